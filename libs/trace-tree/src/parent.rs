//! W3C Trace Context's `traceparent`: `00-<trace>-<span>-<flags>`.

/// What a `traceparent` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceParent {
    /// 32 hexadecimal digits.
    pub trace_id: String,
    /// Whether spans of this trace are sent to anybody.
    pub is_sampled: bool,
}

// === impl TraceParent ===

impl TraceParent {
    /// Reads a `traceparent`; nothing where the text is none.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let mut hex = |digits: usize| {
            let part = parts.next()?;
            let is_so = part.len() == digits && part.bytes().all(|it| it.is_ascii_hexdigit());
            is_so.then_some(part)
        };
        let (_version, trace_id, _span, flags) = (hex(2)?, hex(32)?, hex(16)?, hex(2)?);
        let flags = u8::from_str_radix(flags, 16).ok()?;
        trace_id.contains(|digit| digit != '0').then(|| Self {
            trace_id: trace_id.to_owned(),
            is_sampled: flags & 1 == 1,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trace_and_whether_it_is_kept_are_read() {
        const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
        let cases = [
            (format!("00-{TRACE}-b7ad6b7169203331-01"), Some(true)),
            (format!("00-{TRACE}-b7ad6b7169203331-00"), Some(false)),
            (format!("cc-{TRACE}-b7ad6b7169203331-03-later"), Some(true)),
            (format!("00-{TRACE}-b7ad6b7169203331"), None),
            (format!("00-{TRACE}-b7ad-01"), None),
            (format!("00-{}-b7ad6b7169203331-01", "0".repeat(32)), None),
            ("restart".to_owned(), None),
            (String::new(), None),
        ];
        for (text, is_sampled) in cases {
            let read = TraceParent::parse(&text);
            assert!(read.iter().all(|it| it.trace_id == TRACE), "{text}");
            assert_eq!(read.map(|it| it.is_sampled), is_sampled, "{text}");
        }
    }
}

//! What users are shown is in the page they look it up in.
//!
//! Owns finding the words in a source: its string literals that are sentences or reasons. What they mean it does not know.

/// One line for each literal of a source that a page lacks. `{…}` in a literal is `…` in the page.
pub fn check(path: &str, source: &str, page: &str) -> Vec<String> {
    let shown = literals(source)
        .into_iter()
        .map(|literal| as_in_page(&literal));
    shown
        .filter(|words| is_shown(words) && !page.contains(words.as_str()))
        .map(|words| format!("{path}: {words:?} is not in the page"))
        .collect()
}

/// The string literals of a source's code, without its tests and comments.
fn literals(source: &str) -> Vec<String> {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let code = lines.collect::<Vec<_>>().join("\n");
    let mut literals = Vec::new();
    let mut rest = code.chars().peekable();
    while let Some(next) = rest.next() {
        if next != '"' {
            continue;
        }
        let mut literal = String::new();
        while let Some(next) = rest.next().filter(|next| *next != '"') {
            match next {
                '\\' if rest.next_if_eq(&'\n').is_some() => {
                    while rest.next_if(|next| next.is_whitespace()).is_some() {}
                }
                '\\' => literal.extend(rest.next()),
                next => literal.push(next),
            }
        }
        literals.push(literal);
    }
    literals
}

fn as_in_page(literal: &str) -> String {
    let mut words = String::new();
    for (index, part) in literal.split('{').enumerate() {
        let fixed = if index == 0 {
            part
        } else {
            part.split_once('}').map_or(part, |(_, fixed)| fixed)
        };
        if index > 0 && !words.ends_with('…') {
            words.push('…');
        }
        words.push_str(fixed);
    }
    words
}

/// Whether words are a sentence, or a reason such as `PodGone`.
fn is_shown(words: &str) -> bool {
    let is_reason = words.chars().all(char::is_alphabetic)
        && words.starts_with(char::is_uppercase)
        && words.chars().any(char::is_lowercase);
    is_reason || words.chars().filter(|next| *next == ' ').count() > 1
}

//! Reading fields of an object that may be anything, collecting what is wrong.

use serde_json::Value;

use crate::{Code, Fault};

/// The longest name of an object (Kubernetes).
const LONGEST_NAME: usize = 253;

/// The faults of a request, as they are found.
#[derive(Debug, Default)]
pub(crate) struct Faults(pub(crate) Vec<Fault>);

impl Faults {
    pub(crate) fn bad(&mut self, field: impl Into<String>, problem: impl Into<String>) {
        let code = Code::BadRequest;
        self.0.push(Fault {
            field: field.into(),
            problem: problem.into(),
            code,
        });
    }

    pub(crate) fn forbidden(&mut self, field: impl Into<String>, problem: impl Into<String>) {
        let code = Code::Forbidden;
        self.0.push(Fault {
            field: field.into(),
            problem: problem.into(),
            code,
        });
    }

    /// An optional whole number of at least `min` and at most `max`.
    pub(crate) fn check_number(&mut self, spec: &Value, field: &str, min: i64, max: i64) {
        let path = format!("spec.{field}");
        match at(spec, field) {
            None => {}
            Some(value) => match value.as_i64() {
                Some(number) if number < min => {
                    self.bad(path, format!("is {number}; it must be at least {min}"));
                }
                Some(number) if number > max => {
                    self.bad(path, format!("is {number}; it must be at most {max}"));
                }
                Some(_) => {}
                None => self.bad(path, format!("is {value}; it must be a whole number")),
            },
        }
    }

    /// An optional true or false.
    pub(crate) fn check_bool(&mut self, spec: &Value, field: &str) {
        if let Some(value) = at(spec, field)
            && !value.is_boolean()
        {
            self.bad(
                format!("spec.{field}"),
                format!("is {value}; it must be true or false"),
            );
        }
    }
}

/// Whether an object can bear this name: a DNS-1123 subdomain, as Kubernetes has it.
///
/// The name becomes a segment of a URL, so `web?resourceVersion=0` and `web/log` must not pass.
pub(crate) fn is_object_name(name: &str) -> bool {
    let is_edge = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.len() <= LONGEST_NAME
        && name.split('.').all(|part| {
            let bytes = part.as_bytes();
            bytes.first().is_some_and(|byte| is_edge(*byte))
                && bytes.last().is_some_and(|byte| is_edge(*byte))
                && bytes.iter().all(|byte| is_edge(*byte) || *byte == b'-')
        })
}

/// A value by dotted path; null is no value.
pub(crate) fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    let found = path
        .split('.')
        .try_fold(value, |value, key| value.get(key))?;
    (!found.is_null()).then_some(found)
}

pub(crate) fn label<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.get("metadata")?.get("labels")?.get(name)?.as_str()
}

pub(crate) fn annotation<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object
        .get("metadata")?
        .get("annotations")?
        .get(name)?
        .as_str()
}

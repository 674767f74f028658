//! The envelope of `apiextensions.k8s.io/v1`: ConversionReview in, ConversionReview out.
//!
//! A list is one review with all its objects. They are read and written one by one, so that the memory needed is
//! that of the two bodies and of one object.

use serde::Deserialize;
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};

use super::{Version, convert};

/// What is said to a review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The ConversionReview with the response.
    pub body: Vec<u8>,
    /// Why it failed, if it did; the response says so too.
    pub failure: Option<String>,
    /// What in the objects could not be read and was kept aside.
    pub warnings: Vec<String>,
}

/// A request that cannot be answered, because it has no uid to answer to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}; expected is a ConversionReview")]
pub struct NotAReview(String);

#[derive(Deserialize)]
struct Review<'a> {
    #[serde(borrow)]
    request: Request<'a>,
}

/// As far as it is a request at all, so that whatever else is wrong can be answered.
#[derive(Deserialize)]
struct Request<'a> {
    uid: String,
    #[serde(default, rename = "desiredAPIVersion")]
    desired: Value,
    #[serde(borrow, default)]
    objects: Option<&'a RawValue>,
}

/// Answers a review.
///
/// # Errors
/// It is none.
pub fn answer(body: &[u8]) -> Result<Answer, NotAReview> {
    let review: Review<'_> =
        serde_json::from_slice(body).map_err(|error| NotAReview(error.to_string()))?;
    let request = review.request;
    if request.uid.is_empty() {
        return Err(NotAReview("request.uid is empty".to_owned()));
    }
    let mut warnings = Vec::new();
    let (response, failure) = match convert_all(&request, &mut warnings) {
        Ok(objects) => {
            let response = json!({ "uid": request.uid, "result": { "status": "Success" } });
            (with_objects(&response, &objects), None)
        }
        Err(failure) => {
            let result = json!({ "status": "Failed", "message": failure });
            let response = json!({ "uid": request.uid, "result": result, "convertedObjects": [] });
            (response.to_string(), Some(failure))
        }
    };
    let head = r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","response":"#;
    Ok(Answer {
        body: format!("{head}{response}}}").into_bytes(),
        failure,
        warnings,
    })
}

/// The converted objects, or which cannot be converted and why.
fn convert_all(
    request: &Request<'_>,
    warnings: &mut Vec<String>,
) -> Result<Vec<Box<RawValue>>, String> {
    let desired = request.desired.as_str().unwrap_or_default();
    let version: Version = desired
        .parse()
        .map_err(|problem| format!("request.desiredAPIVersion {problem}"))?;
    let objects = request.objects.map_or("null", RawValue::get);
    let objects: Vec<&RawValue> = serde_json::from_str(objects)
        .map_err(|error| format!("request.objects is not a list: {error}"))?;
    let convert_one = |(index, raw): (usize, &&RawValue)| {
        let of = |problem: String| format!("request.objects[{index}]: {problem}");
        let mut object: Value =
            serde_json::from_str(raw.get()).map_err(|error| of(error.to_string()))?;
        let warned = convert(&mut object, version).map_err(|error| of(error.to_string()))?;
        warnings.extend(warned);
        to_raw_value(&object).map_err(|error| of(error.to_string()))
    };
    objects.iter().enumerate().map(convert_one).collect()
}

/// The response with its objects, which are JSON already.
fn with_objects(response: &Value, objects: &[Box<RawValue>]) -> String {
    let mut text = response.to_string();
    text.pop(); // The closing brace.
    let length: usize = objects.iter().map(|object| object.get().len() + 1).sum();
    text.reserve(length + 32);
    text += r#","convertedObjects":["#;
    for (index, object) in objects.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        text += object.get();
    }
    text += "]}";
    text
}

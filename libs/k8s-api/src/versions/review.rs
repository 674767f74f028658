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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The ConversionReview with the response.
    pub body: Vec<u8>,
    /// The reason of a failed conversion, which is in the response too.
    pub failure: Option<String>,
    /// Parts of the objects that cannot be read and were kept aside.
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

/// Decodes any request that has a uid, so that its other faults can be answered.
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
/// `body` is no ConversionReview with a uid.
pub fn answer(body: &[u8]) -> Result<Answer, NotAReview> {
    let review = serde_json::from_slice(body);
    let Review { request } = review.map_err(|error| NotAReview(error.to_string()))?;
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

/// The converted objects, or the first that cannot be converted and its problem.
fn convert_all(
    request: &Request<'_>,
    warnings: &mut Vec<String>,
) -> Result<Vec<Box<RawValue>>, String> {
    let desired = request.desired.as_str().unwrap_or_default();
    let version: Result<Version, _> = desired.parse();
    let version = version.map_err(|problem| format!("request.desiredAPIVersion {problem}"))?;
    let objects = request.objects.map_or("null", RawValue::get);
    let objects: Vec<&RawValue> = serde_json::from_str(objects)
        .map_err(|error| format!("request.objects is not a list: {error}"))?;
    let convert_one = |(index, raw): (usize, &&RawValue)| {
        let of = |problem: String| format!("request.objects[{index}]: {problem}");
        let object = serde_json::from_str(raw.get());
        let mut object: Value = object.map_err(|error| of(error.to_string()))?;
        warnings.extend(convert(&mut object, version).map_err(|error| of(error.to_string()))?);
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
        text += if index > 0 { "," } else { "" };
        text += object.get();
    }
    text + "]}"
}

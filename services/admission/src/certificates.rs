//! Making certificates of a Service: a CA that signs once, and the leaf that it signs.
//!
//! Owns their names and their time of renewal. The CA's key is thrown away: renewal makes a new CA, and the
//! bundle holds the old one beside it until that has run out.

use jiff::{Span, Timestamp, tz::TimeZone};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};

/// Certificates are renewed when less than this is left.
const RENEW_BEFORE_DAYS: i64 = 120;

/// What certificates are made for.
#[derive(Clone, Debug)]
pub(crate) struct Purpose {
    /// The Service that presents the leaf, and its namespace.
    pub(crate) service: String,
    pub(crate) namespace: String,
    /// The CA's name: for people only.
    pub(crate) ca_name: &'static str,
    /// More than [`RENEW_BEFORE_DAYS`].
    pub(crate) lifetime_days: i64,
}

/// What the replicas share, as PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Certificates {
    /// The CA, or the new and the old one.
    pub(crate) bundle: String,
    pub(crate) leaf: String,
    pub(crate) key: String,
    /// When they have to be made anew.
    pub(crate) renew_at: Timestamp,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum MakeError {
    #[error("failed to make a certificate")]
    Certificate(#[from] rcgen::Error),
    #[error("the clock shows a time that certificates cannot hold")]
    Clock(#[from] jiff::Error),
}

/// Makes certificates; `old_ca` stays trusted beside the new one.
pub(crate) fn make(
    purpose: &Purpose,
    old_ca: Option<&str>,
    now: Timestamp,
) -> Result<Certificates, MakeError> {
    let end = days_from(now, purpose.lifetime_days)?;
    let ca_key = KeyPair::generate()?;
    let mut ca = parameters(Vec::new(), purpose.ca_name, now, end)?;
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let ca_certificate = ca.self_signed(&ca_key)?;
    let issuer = Issuer::new(ca, ca_key);

    let key = KeyPair::generate()?;
    let service = &purpose.service;
    let name = format!("{service}.{}.svc", purpose.namespace);
    let names = [&name, &format!("{name}.cluster.local"), service];
    let mut leaf = parameters(names.map(String::clone).to_vec(), &name, now, end)?;
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let leaf_certificate = leaf.signed_by(&key, &issuer)?;

    let mut bundle = ca_certificate.pem();
    bundle.push_str(old_ca.and_then(first_certificate).unwrap_or_default());
    Ok(Certificates {
        bundle,
        leaf: leaf_certificate.pem(),
        key: key.serialize_pem(),
        renew_at: days_from(end, -RENEW_BEFORE_DAYS)?,
    })
}

fn parameters(
    names: Vec<String>,
    common_name: &str,
    now: Timestamp,
    end: Timestamp,
) -> Result<CertificateParams, MakeError> {
    let mut parameters = CertificateParams::new(names)?;
    let subject = &mut parameters.distinguished_name;
    subject.push(DnType::CommonName, common_name);
    let midnight = |time: Timestamp| {
        let date = time.to_zoned(TimeZone::UTC).date();
        let [month, day] = [date.month(), date.day()].map(i8::unsigned_abs);
        date_time_ymd(date.year().into(), month, day)
    };
    // A day early: a client's clock may be behind ours.
    parameters.not_before = midnight(days_from(now, -1)?);
    parameters.not_after = midnight(end);
    Ok(parameters)
}

fn days_from(now: Timestamp, days: i64) -> Result<Timestamp, jiff::Error> {
    now.checked_add(Span::new().try_hours(days * 24)?)
}

/// The first certificate of a bundle: the one that signed the leaf in use.
fn first_certificate(bundle: &str) -> Option<&str> {
    const END: &str = "-----END CERTIFICATE-----";
    let end = bundle.find(END)? + END.len();
    bundle.get(..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn purpose(lifetime_days: i64) -> Purpose {
        Purpose {
            service: "admission".to_owned(),
            namespace: "podwright-system".to_owned(),
            ca_name: "a CA",
            lifetime_days,
        }
    }

    #[test]
    fn a_renewal_keeps_the_ca_that_signed_the_leaf_in_use() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let first = make(&purpose(365), None, now).unwrap();
        let second = make(&purpose(365), Some(&first.bundle), now).unwrap();
        let third = make(&purpose(365), Some(&second.bundle), now).unwrap();
        assert_eq!(first.bundle.matches("BEGIN CERTIFICATE").count(), 1);
        assert!(second.bundle.contains(first.bundle.trim()));
        assert_eq!(third.bundle.matches("BEGIN CERTIFICATE").count(), 2);
        assert!(!third.bundle.contains(first.bundle.trim()));
        assert!(first.renew_at > now);
    }

    #[test]
    fn a_longer_life_is_renewed_later() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let of_a_year = make(&purpose(365), None, now).unwrap();
        let of_ten = make(&purpose(3650), None, now).unwrap();
        assert_eq!(of_a_year.renew_at, days_from(now, 245).unwrap());
        assert_eq!(of_ten.renew_at, days_from(now, 3530).unwrap());
    }
}

//! Making the webhook's certificates: a CA that signs once, and the leaf that it signs.
//!
//! Owns their names and lifetimes. The CA's key is thrown away: renewal makes a new CA, and the bundle holds
//! the old one beside it until that has run out.

use jiff::{Span, Timestamp, tz::TimeZone};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};

/// How long certificates last.
const LIFETIME_DAYS: i64 = 365;

/// They are renewed when less than this is left.
const RENEW_BEFORE_DAYS: i64 = 120;

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

/// Makes certificates for a Service; `old_ca` stays trusted beside the new one.
pub(crate) fn make(
    service: &str,
    namespace: &str,
    old_ca: Option<&str>,
    now: Timestamp,
) -> Result<Certificates, MakeError> {
    let ca_key = KeyPair::generate()?;
    let mut ca = parameters(Vec::new(), "podwright webhook CA", now)?;
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let ca_certificate = ca.self_signed(&ca_key)?;
    let issuer = Issuer::new(ca, ca_key);

    let key = KeyPair::generate()?;
    let name = format!("{service}.{namespace}.svc");
    let names = vec![
        name.clone(),
        format!("{name}.cluster.local"),
        service.to_owned(),
    ];
    let mut leaf = parameters(names, &name, now)?;
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let leaf_certificate = leaf.signed_by(&key, &issuer)?;

    let mut bundle = ca_certificate.pem();
    bundle.push_str(old_ca.and_then(first_certificate).unwrap_or_default());
    Ok(Certificates {
        bundle,
        leaf: leaf_certificate.pem(),
        key: key.serialize_pem(),
        renew_at: days_from(now, LIFETIME_DAYS - RENEW_BEFORE_DAYS)?,
    })
}

fn parameters(
    names: Vec<String>,
    common_name: &str,
    now: Timestamp,
) -> Result<CertificateParams, MakeError> {
    let mut parameters = CertificateParams::new(names)?;
    parameters
        .distinguished_name
        .push(DnType::CommonName, common_name);
    // A day early: the API server's clock may be behind ours.
    let (year, month, day) = date(days_from(now, -1)?);
    parameters.not_before = date_time_ymd(year, month, day);
    let (year, month, day) = date(days_from(now, LIFETIME_DAYS)?);
    parameters.not_after = date_time_ymd(year, month, day);
    Ok(parameters)
}

fn days_from(now: Timestamp, days: i64) -> Result<Timestamp, jiff::Error> {
    now.checked_add(Span::new().try_hours(days * 24)?)
}

/// Year, month and day in UTC.
fn date(time: Timestamp) -> (i32, u8, u8) {
    let date = time.to_zoned(TimeZone::UTC).date();
    (
        i32::from(date.year()),
        date.month().unsigned_abs(),
        date.day().unsigned_abs(),
    )
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

    #[test]
    fn a_renewal_keeps_the_ca_that_signed_the_leaf_in_use() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let first = make("admission", "podwright-system", None, now).unwrap();
        let second = make("admission", "podwright-system", Some(&first.bundle), now).unwrap();
        let third = make("admission", "podwright-system", Some(&second.bundle), now).unwrap();
        assert_eq!(first.bundle.matches("BEGIN CERTIFICATE").count(), 1);
        assert!(second.bundle.contains(first.bundle.trim()));
        assert_eq!(third.bundle.matches("BEGIN CERTIFICATE").count(), 2);
        assert!(!third.bundle.contains(first.bundle.trim()));
        assert!(first.renew_at > now);
    }
}

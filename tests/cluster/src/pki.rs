//! The cluster's certificates and keys, made anew for every `up`.

use std::{net::IpAddr, path::PathBuf};

use anyhow::Result;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose, SanType,
};

use crate::{
    folders,
    folders::Folders,
    plan::{API_SERVER, API_SERVICE},
};

/// Where the files are; all are PEM.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    pub(crate) authority: PathBuf,
    pub(crate) authority_key: PathBuf,
    pub(crate) server: PathBuf,
    pub(crate) server_key: PathBuf,
    /// What the API server shows to kubelets.
    pub(crate) client: PathBuf,
    pub(crate) client_key: PathBuf,
    /// What signs service account tokens, and what they are checked with.
    pub(crate) accounts: PathBuf,
    pub(crate) accounts_key: PathBuf,
}

impl Keys {
    pub(crate) fn at(folders: &Folders) -> Self {
        let file = |name: &str| folders.keys().join(name);
        Self {
            authority: file("authority.crt"),
            authority_key: file("authority.key"),
            server: file("server.crt"),
            server_key: file("server.key"),
            client: file("client.crt"),
            client_key: file("client.key"),
            accounts: file("accounts.pub"),
            accounts_key: file("accounts.key"),
        }
    }

    pub(crate) fn make(&self) -> Result<()> {
        let authority = CertifiedIssuer::self_signed(authority(), KeyPair::generate()?)?;
        folders::write(&self.authority, authority.pem())?;
        folders::write(&self.authority_key, authority.key().serialize_pem())?;

        let key = KeyPair::generate()?;
        folders::write(&self.server, server()?.signed_by(&key, &authority)?.pem())?;
        folders::write(&self.server_key, key.serialize_pem())?;

        let key = KeyPair::generate()?;
        folders::write(&self.client, client().signed_by(&key, &authority)?.pem())?;
        folders::write(&self.client_key, key.serialize_pem())?;

        let key = KeyPair::generate()?;
        folders::write(&self.accounts, key.public_key_pem())?;
        folders::write(&self.accounts_key, key.serialize_pem())
    }
}

fn named(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

fn authority() -> CertificateParams {
    let mut params = named("podwright-test-cluster");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::CrlSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    params
}

fn server() -> Result<CertificateParams> {
    let mut params = named("kube-apiserver");
    let addresses = [
        IpAddr::from([127, 0, 0, 1]),
        API_SERVER.into(),
        API_SERVICE.into(),
    ];
    params.subject_alt_names = addresses.into_iter().map(SanType::IpAddress).collect();
    for name in [
        "localhost",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
    ] {
        params
            .subject_alt_names
            .push(SanType::DnsName(name.try_into()?));
    }
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    Ok(params)
}

fn client() -> CertificateParams {
    let mut params = named("kube-apiserver-kubelet-client");
    params
        .distinguished_name
        .push(DnType::OrganizationName, "system:masters");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params
}

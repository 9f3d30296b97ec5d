//! TLS to the server, by rustls.
//!
//! Owns what of a certificate is checked. `prefer` and `require` encrypt without asking who the
//! other side is, as libpq does; who needs to know says `verify-full`.

use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{self, CryptoProvider};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::address::{Address, Check};
use crate::store::Error;

pub(super) fn connector(address: &Address) -> Result<MakeRustlsConnect, Error> {
    let provider = Arc::new(crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(&error.to_string()))?;
    let config = if address.check == Check::AuthorityAndName {
        builder.with_root_certificates(roots(address.roots.as_deref())?).with_no_client_auth()
    } else {
        let verifier = match address.check {
            Check::Authority => Some(verifier(address, &provider)?),
            Check::Nothing | Check::AuthorityAndName => None,
        };
        let lenient = Lenient { verifier, provider };
        let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(lenient));
        builder.with_no_client_auth()
    };
    Ok(MakeRustlsConnect::new(config))
}

fn unusable(detail: &str) -> Error {
    Error::Unreachable { detail: format!("TLS cannot be used: {detail}") }
}

fn verifier(
    address: &Address,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, Error> {
    let roots = Arc::new(roots(address.roots.as_deref())?);
    WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(provider))
        .build()
        .map_err(|error| unusable(&error.to_string()))
}

fn roots(file: Option<&Path>) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    match file {
        Some(path) => {
            let unreadable = |error: rustls::pki_types::pem::Error| {
                unusable(&format!("{} holds no certificates: {error}", path.display()))
            };
            for certificate in CertificateDer::pem_file_iter(path).map_err(unreadable)? {
                roots
                    .add(certificate.map_err(unreadable)?)
                    .map_err(|error| unusable(&format!("{}: {error}", path.display())))?;
            }
        }
        None => {
            // Single certificates of the machine that cannot be read are not our business.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if roots.is_empty() {
        return Err(unusable("no trusted certificates were found; name them with sslrootcert"));
    }
    Ok(roots)
}

/// Checks the authority without the name, or nothing; the handshake is always checked.
#[derive(Debug)]
struct Lenient {
    verifier: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(verifier) = &self.verifier else { return Ok(ServerCertVerified::assertion()) };
        let verified =
            verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            // The name is checked after the chain, so only the name is wrong here.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

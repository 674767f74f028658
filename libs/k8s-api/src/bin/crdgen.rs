//! Prints the CRD's manifest.

#[expect(clippy::print_stdout, reason = "this is what it is for")]
fn main() -> Result<(), serde_yaml_ng::Error> {
    print!("{}", k8s_api::crd::manifest()?);
    Ok(())
}

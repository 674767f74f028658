# Every command of the project; `./dev` calls these after installing what is missing.

set shell := ["bash", "-euo", "pipefail", "-c"]
set positional-arguments

cluster_bin := "cargo run -q -p cluster --"
compose := "$(docker compose version >/dev/null 2>&1 && echo docker compose || echo docker-compose) -f compose/compose.yaml"
export CARGO_TERM_PROGRESS_WHEN := "never"

# List what there is
_default:
    @just --list

# Show it work: a real cluster, a pod, one container of it recreated, the trace
demo *arguments:
    @cargo run -q -p e2e --bin demo -- "$@"

# Every check and every test there is
test: check deny test-offline test-integration test-e2e

# Formatting, lints, spelling
check:
    cargo fmt --all --check
    cargo clippy -q --workspace --all-targets -- -D warnings
    typos

# Licences, bans and sources of outside crates (needs cargo-deny)
deny:
    cargo deny --log-level error check bans licenses sources

# Rules, adapters, simulation, repository rules: no port, no cluster
test-offline:
    cargo nextest run
    cargo test -q --doc

# Histories of all services with everything going wrong: seeds, first seed; prints what occurred
simulate N="1000" first="0":
    cargo run -q -p simulation --bin simulate -- {{ N }} {{ first }}

# The bus against real NATS servers, old and new
test-integration:
    {{ cluster_bin }} build
    cargo nextest run -p integration

# Every promise to users, on a real cluster (KUBECONFIG's, or one of our own)
test-e2e:
    cargo run -q -p e2e --bin e2e

# Time a thing and print the figures: `crr`, `launch`
bench what="crr" *arguments:
    cargo run -q -p bench -- {{ what }} "${@:2}"

# The test cluster by hand: up [--nodes N], down, status, kubectl …, exec …, load …, logs, fault …
cluster *arguments:
    @{{ cluster_bin }} "$@"

# Roll our services out on the test cluster, from the manifests
deploy:
    @{{ cluster_bin }} deploy

# NATS, Jaeger and our services with Docker, against the cluster of KUBECONFIG (compose/README.md)
up *arguments:
    {{ compose }} up --build --detach "$@"

# End what `up` started
down *arguments:
    {{ compose }} --profile node down "$@"

# See compose recreate a container: on a test cluster, with this machine's Docker engine
test-compose:
    compose/test

# kubectl-crr as krew takes it: static archives, their sha256 and the manifest (RELEASE_URL=…, docs/kubectl-crr.md)
kubectl-crr *platforms:
    cli/kubectl-crr/pack "$@"

# Write the CRDs anew from their Rust types
crds:
    cargo run -q -p k8s-api --bin crdgen > k8s/crds/apps.kruise.io_containerrecreaterequests.yaml

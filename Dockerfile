# The images of the services, one target each:
#   docker build --target admission -t REGISTRY/podwright/admission:TAG .
# The first target compiles them all, the others find that in the cache. It builds with and without BuildKit, which is
# why no cache is mounted. Both base images may come from elsewhere (--build-arg); `compose/base-images` makes them.
# (The test cluster needs no container engine: `./dev deploy` packs its images itself.)
ARG RUST_IMAGE=docker.io/library/rust:1.95.0-bookworm
ARG RUNTIME_IMAGE=gcr.io/distroless/cc-debian12

FROM ${RUST_IMAGE} AS build
RUN command -v protoc \
    || { apt-get update \
    && apt-get install -y --no-install-recommends protobuf-compiler \
    && rm -rf /var/lib/apt/lists/*; }
WORKDIR /source
COPY . .
# The image's own toolchain, without the components that rust-toolchain.toml asks for.
ENV RUSTUP_TOOLCHAIN=1.95.0 CARGO_TARGET_DIR=/target CARGO_INCREMENTAL=0
RUN cargo build --release --locked -p admission -p barrier-manager -p crr-scheduler -p node-executor \
    && mkdir /services \
    && cd /target/release && cp admission barrier-manager crr-scheduler node-executor /services/ && cd / \
    && rm -rf /target "${CARGO_HOME:-/root/.cargo}/registry"

FROM ${RUNTIME_IMAGE} AS admission
COPY --from=build /services/admission /usr/local/bin/admission
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/admission"]

FROM ${RUNTIME_IMAGE} AS barrier-manager
COPY --from=build /services/barrier-manager /usr/local/bin/barrier-manager
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/barrier-manager"]

FROM ${RUNTIME_IMAGE} AS crr-scheduler
COPY --from=build /services/crr-scheduler /usr/local/bin/crr-scheduler
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/crr-scheduler"]

# The runtime's socket and the journal belong to root.
FROM ${RUNTIME_IMAGE} AS node-executor
COPY --from=build /services/node-executor /usr/local/bin/node-executor
USER 0:0
ENTRYPOINT ["/usr/local/bin/node-executor"]

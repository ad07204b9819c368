# The image: `docker build --tag runner .`, or the same with podman or buildah.
#
# The last stage is one static file and a place for temporary files. The target `slim` has the same on a Debian base,
# for judging clients that need its libraries. Neither needs BuildKit.

# Any base with a Rust toolchain (Cargo.toml says from which version on), a C linker and the static C library.
ARG BUILDER=docker.io/library/rust:1.95-slim-bookworm
# Any base with the libraries of the client to be judged.
ARG SLIM=docker.io/library/debian:bookworm-slim

FROM ${BUILDER} AS builder
# The commit of the sources: the build context has no repository.
ARG RUNNER_COMMIT
WORKDIR /source
COPY . .
RUN cargo build --profile dist --locked \
 && install -D -m 0755 target/*/dist/runner /image/runner \
 && install -d -m 1777 /image/tmp

FROM ${SLIM} AS slim
COPY --from=builder /image/runner /runner
LABEL org.opencontainers.image.title="runner" \
      org.opencontainers.image.description="A sandboxed runner with network isolation, on a base for dynamic clients" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0 OR MIT"
USER 65532:65532
ENTRYPOINT ["/runner"]
CMD ["case-b"]

FROM scratch AS image
COPY --from=builder /image/ /
LABEL org.opencontainers.image.title="runner" \
      org.opencontainers.image.description="A sandboxed runner with network isolation" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0 OR MIT"
USER 65532:65532
ENTRYPOINT ["/runner"]
CMD ["case-b"]

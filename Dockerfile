FROM python:3.11-slim-bookworm AS builder
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src

# The locks come first: what changes most often is built last. Neither environment gets a pip of its own, and only wheels
# are taken, so that no package runs code while it is installed.
COPY requirements/build.txt requirements/runtime.txt requirements/
RUN python -m venv --without-pip /build && \
    pip --python /build/bin/python install --require-hashes --only-binary=:all: -r requirements/build.txt
RUN python -m venv --without-pip /opt/taintkeeper && \
    pip --python /opt/taintkeeper/bin/python install --require-hashes --only-binary=:all: -r requirements/runtime.txt

COPY pyproject.toml README.md LICENSE ./
COPY operator operator
RUN /build/bin/python -m hatchling build --target wheel --directory /wheel && \
    pip --python /opt/taintkeeper/bin/python install --no-deps --no-index /wheel/*.whl


FROM python:3.11-slim-bookworm
LABEL org.opencontainers.image.title="Taintkeeper" \
      org.opencontainers.image.description="Taints Kubernetes nodes by their conditions and evicts what does not tolerate them" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=builder /opt/taintkeeper /opt/taintkeeper
# The root may be read-only, and pip has compiled everything. USER, since Python finds no name for a user that is only a
# number, and Kopf asks for one.
ENV PATH=/opt/taintkeeper/bin:$PATH PYTHONDONTWRITEBYTECODE=1 USER=taintkeeper
EXPOSE 8080 8081
# A number, so that the kubelet can check runAsNonRoot.
USER 65532:65532
ENTRYPOINT ["taintkeeper"]
CMD ["run"]

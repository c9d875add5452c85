# One image per binary:
#
#   docker build --build-arg BINARY=worker --build-arg VERSION=1.2.3 -t holdfast-worker .
#
# BINARY is standalone, worker, starter, gateway or gauntlet. The worker's image has
# git and ssh, which managed Git uses; the others have nothing but the binary.
# The base image tags could not be pulled where this file was written: unverified.

ARG BINARY=worker

FROM golang:1.26.8-bookworm AS build
ARG BINARY
ARG VERSION=dev
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -tags stdjson -trimpath \
    -ldflags "-s -w -X main.version=${VERSION}" \
    -o /out/holdfast "./cmd/${BINARY}"

FROM debian:bookworm-slim AS runtime-worker
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates git openssh-client \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 65532 nonroot \
    && useradd --uid 65532 --gid 65532 --create-home --home-dir /home/nonroot nonroot \
    && install -d -o nonroot -g nonroot /var/lib/holdfast

FROM gcr.io/distroless/static-debian12:nonroot AS runtime-standalone
FROM gcr.io/distroless/static-debian12:nonroot AS runtime-starter
FROM gcr.io/distroless/static-debian12:nonroot AS runtime-gateway
FROM gcr.io/distroless/static-debian12:nonroot AS runtime-gauntlet

FROM runtime-${BINARY}
COPY --from=build /out/holdfast /usr/local/bin/holdfast
USER 65532:65532
WORKDIR /home/nonroot
ENTRYPOINT ["/usr/local/bin/holdfast"]

# syntax=docker/dockerfile:1
#
# belfry alone in an image: a static program without a shell, as a user without rights. docs/guides/deploy.md says how to run it.
#
#   docker build -t belfry .
#   docker run -p 127.0.0.1:8080:8080 -v belfry:/data -v ./config:/etc/belfry:ro belfry

FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN make build
RUN mkdir /empty

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /src/bin/belfry /belfry
COPY --from=build /src/LICENSE /src/NOTICE /src/THIRD_PARTY_LICENSES /licenses/
COPY --from=build /src/deploy/belfry.yaml /etc/belfry/belfry.yaml
COPY --from=build --chown=65532:65532 /empty /data
ENV BELFRY_CONFIG=/etc/belfry/belfry.yaml \
    BELFRY_DATA=/data \
    BELFRY_LISTEN=:8080 \
    BELFRY_DEVELOPMENT=false
USER 65532:65532
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=6s --start-period=1m --retries=3 CMD ["/belfry", "health"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["/belfry"]
CMD ["serve"]

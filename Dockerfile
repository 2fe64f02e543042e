FROM debian:12-slim AS build
WORKDIR /src
COPY scripts/install.sh scripts/
RUN scripts/install.sh build
COPY . .
RUN scripts/build.sh release flashgate && strip build/release/flashgate

FROM debian:12-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates libbrotli1 \
      libfmt9 libprometheus-cpp-core1.0 libsimdjson14 libssl3 libstdc++6 libyaml-cpp0.7 libzstd1 zlib1g \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --uid 10001 --home-dir /var/lib/flashgate --create-home flashgate
COPY --from=build /src/build/release/flashgate /usr/local/bin/flashgate
USER flashgate
ENV FLASHGATE_LISTEN=0.0.0.0:8080
EXPOSE 8080
ENTRYPOINT ["/usr/local/bin/flashgate"]
CMD ["serve"]

# toolgate in Debian slim, as a user of its own. The socket is in /run/toolgate: mount that folder into an agent's container.
#
#   docker build -t toolgate .
#   docker run -v sockets:/run/toolgate -v state:/var/lib/toolgate -v ./policies:/etc/toolgate/policies:ro toolgate
FROM debian:bookworm-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends make ca-certificates
WORKDIR /src
COPY . /src
RUN make static BUILD=/build

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends libcurl4 ca-certificates && rm -rf /var/lib/apt/lists/*
RUN groupadd --system --gid 10001 toolgate && useradd --system --uid 10001 --gid toolgate --home-dir /var/lib/toolgate --shell /usr/sbin/nologin toolgate && install -d -o toolgate -g toolgate -m 750 /var/lib/toolgate && install -d -o toolgate -g toolgate -m 755 /run/toolgate && install -d /etc/toolgate/policies
COPY --from=build /build/static/toolgate /usr/bin/toolgate
COPY --from=build /src/policies /usr/share/toolgate/policies
COPY --from=build /src/LICENSE /usr/share/doc/toolgate/LICENSE
ENV TOOLGATE_SOCKET=/run/toolgate/toolgate.sock XDG_STATE_HOME=/var/lib
USER toolgate
HEALTHCHECK --interval=30s --timeout=5s --start-period=5s CMD ["toolgate", "doctor", "--socket", "/run/toolgate/toolgate.sock"]
ENTRYPOINT ["toolgate"]
CMD ["serve", "--socket", "/run/toolgate/toolgate.sock", "--policies", "/etc/toolgate/policies"]

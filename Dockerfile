# The broker with client and command line. docs/howto/run-in-containers.md says how to use it.
FROM python:3.13-slim AS build
COPY --from=ghcr.io/astral-sh/uv:0.9 /uv /usr/local/bin/uv
ENV UV_PROJECT_ENVIRONMENT=/opt/interpulse UV_PYTHON_DOWNLOADS=never UV_LINK_MODE=copy UV_COMPILE_BYTECODE=1
WORKDIR /src
COPY pyproject.toml uv.lock README.md LICENSE ./
COPY src ./src
RUN uv sync --frozen --no-dev --no-editable --extra broker
# Its owner is the owner of a new volume.
RUN mkdir /data

FROM python:3.13-slim
COPY --from=build /opt/interpulse /opt/interpulse
COPY --from=build --chown=10000:10000 /data /data
ENV PATH=/opt/interpulse/bin:$PATH bindAddress=0.0.0.0 dataDir=/data
USER 10000:10000
VOLUME /data
EXPOSE 6650 8080
HEALTHCHECK --start-period=10s --interval=10s CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8080/readyz')"]
ENTRYPOINT ["interpulse"]
CMD ["standalone"]

// A small agent in one static file: asks its provider over a plain socket, and reports each step as a line of JSON.
//
//   cc -static -O2 -o agent agent.c

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void fail(const char *what) {
    printf("{\"type\":\"error\",\"message\":\"%s\"}\n", what);
    exit(1);
}

static const char *variable(const char *name) {
    const char *value = getenv(name);
    if (!value) fail("a variable is missing");
    return value;
}

// Connects to http://ADDRESS:PORT. An agent for production would speak TLS here.
static int connect_to(const char *url) {
    char host[64];
    unsigned short port;
    if (sscanf(url, "http://%63[0-9.]:%hu", host, &port) != 2) fail("the base URL is not http://ADDRESS:PORT");
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1) fail("the base URL has no address");
    int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection < 0 || connect(connection, (struct sockaddr *)&address, sizeof address) != 0) fail("cannot connect");
    return connection;
}

int main(int count, char **words) {
    if (count != 2) fail("usage: agent PROMPT");
    const char *url = variable("ANTHROPIC_BASE_URL");
    char body[1024], head[1024], answer[65536];
    int length = snprintf(body, sizeof body,
                          "{\"model\":\"small\",\"max_tokens\":100,\"messages\":[{\"role\":\"user\",\"content\":\"%s\"}]}", words[1]);
    if (length >= (int)sizeof body) fail("the prompt is too long");
    snprintf(head, sizeof head,
             "POST /v1/messages HTTP/1.1\r\nhost: %s\r\nuser-agent: c-agent/1.0\r\ncontent-type: application/json\r\n"
             "anthropic-version: 2023-06-01\r\nx-api-key: %s\r\ncontent-length: %d\r\nconnection: close\r\n\r\n",
             url + strlen("http://"), variable("ANTHROPIC_API_KEY"), length);
    printf("{\"type\":\"start\",\"prompt_bytes\":%zu}\n", strlen(words[1]));
    fflush(stdout);

    int connection = connect_to(url);
    if (dprintf(connection, "%s%s", head, body) < 0) fail("cannot write");
    size_t got = 0;
    ssize_t more;
    while (got < sizeof answer - 1 && (more = read(connection, answer + got, sizeof answer - 1 - got)) > 0) got += more;
    answer[got] = 0;

    int status = 0;
    sscanf(answer, "HTTP/1.1 %d", &status);
    const char *text = strstr(answer, "\"text\":\"");
    if (status != 200 || !text) fail("the provider gave no text");
    text += strlen("\"text\":\"");
    printf("{\"type\":\"text\",\"text\":\"%.*s\"}\n", (int)strcspn(text, "\""), text);
    printf("{\"type\":\"end\",\"ok\":true}\n");
    return 0;
}

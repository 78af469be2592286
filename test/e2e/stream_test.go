package e2e

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/rogpeppe/go-internal/testscript"

	"belfry/test/kit"
	"belfry/test/kit/natsserver"
)

// openStream returns once the stream is ready. It is read until belfry or the script ends.
func openStream(ts *testscript.TestScript, _ bool, args []string) {
	s := of(ts)
	query := ""
	if len(args) > 1 {
		query = "?" + args[1]
	}
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.server.URL+"/events"+query, nil)
	ts.Check(err)
	s.browsers.send(req)
	res, err := s.client.RoundTrip(req)
	ts.Check(err)
	if res.StatusCode != http.StatusOK {
		cancel()
		ts.Fatalf("GET /events%s: %s", query, res.Status)
	}
	coming := s.recorder.queue()
	ready, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		defer func() { _ = res.Body.Close() }()
		readStream(bufio.NewScanner(res.Body), func(event, data string) {
			if event == "ready" {
				close(ready)
				return
			}
			coming <- &nats.Msg{Subject: "stream." + args[0] + "." + event, Data: []byte(data)}
		})
	}()
	ts.Defer(func() {
		cancel()
		<-ended
	})
	select {
	case <-ready:
	case <-ended:
		ts.Fatalf("the stream has ended before it was ready")
	}
}

// readStream reads server-sent events until the stream ends.
func readStream(lines *bufio.Scanner, on func(event, data string)) {
	lines.Buffer(nil, 1<<20)
	event := ""
	for lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			event = name
		}
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			on(event, data)
		}
	}
}

// busRequest sends a request as any NATS client can.
func busRequest(ts *testscript.TestScript, neg bool, args []string) {
	s := of(ts)
	reply, err := requestOver(s.server.Bus, args[0], args[1])
	if refused := errors.Is(err, nats.ErrPermissionViolation); refused || neg {
		if refused != neg {
			ts.Fatalf("%s: the reply is %v, %v", args[0], reply, err)
		}
		return
	}
	ts.Check(err)
	s.last = response{status: http.StatusOK, body: reply.Data}
	if code := reply.Header.Get("Nats-Service-Error-Code"); code != "" {
		s.last.status, err = strconv.Atoi(code)
		ts.Check(err)
	}
	ts.Logf("%d %s", s.last.status, s.last.body)
}

// requestOver returns the reply to a request over a connection of its own, or what the bus has against it.
func requestOver(bus, subject, body string) (*nats.Msg, error) {
	// LastError has it.
	conn, err := nats.Connect(bus, nats.Timeout(kit.Limit),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	inbox := conn.NewRespInbox()
	replies, err := conn.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	if err := conn.PublishRequest(subject, inbox, []byte(body)); err != nil {
		return nil, err
	}
	// The bus reports a violation before it confirms this.
	if err := errors.Join(conn.FlushTimeout(kit.Limit), conn.LastError()); err != nil {
		return nil, err
	}
	return natsserver.Next(replies)
}

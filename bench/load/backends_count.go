package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// counter is a proxy that counts the requests to a server.
type counter struct {
	url   string
	close func()

	mu   sync.Mutex
	of   map[string]int
	last time.Time
}

func (c *counter) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[what]++
	c.last = time.Now()
}

// silence is how long no request arrives once the work that a request causes is
// done.
const silence = time.Second

// quiet waits until the server receives no more requests, for two minutes at
// most.
func (c *counter) quiet() error {
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(silence / 10) {
		c.mu.Lock()
		since := time.Since(c.last)
		c.mu.Unlock()
		if since > silence {
			return nil
		}
	}
	return errors.New("the server still receives requests after two minutes")
}

func (c *counter) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of = map[string]int{}
}

// share returns the requests by kind, divided by n. The driver sends "hello" as a
// health check.
func (c *counter) share(n int) map[string]float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[string]float64{}
	for what, requests := range c.of {
		if what != "hello" {
			all[what] = float64(requests) / float64(n)
		}
	}
	return all
}

// per is share as text.
func (c *counter) per(n int) string { return byKind(c.share(n)) }

func byKind(requests map[string]float64) string {
	var all []string
	for _, what := range slices.Sorted(maps.Keys(requests)) {
		all = append(all, fmt.Sprintf("%s %.2f", what, requests[what]))
	}
	return strings.Join(all, ", ")
}

// countDynamo counts requests by their operation.
func countDynamo(server string) (*counter, error) {
	u, err := url.Parse(server)
	if err != nil {
		return nil, err
	}
	c := &counter{of: map[string]int{}}
	front := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		_, operation, _ := strings.Cut(r.In.Header.Get("X-Amz-Target"), ".")
		c.add(operation)
		r.SetURL(u)
	}})
	c.url, c.close = front.URL, front.Close
	return c, nil
}

// countMongo counts commands by their name.
func countMongo(server string) (*counter, error) {
	u, err := url.Parse(server)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &counter{of: map[string]int{}, url: "mongodb://" + l.Addr().String() + "/?" + u.RawQuery,
		close: func() { _ = l.Close() }}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go c.forward(client, u.Host)
		}
	}()
	return c, nil
}

// forward forwards messages and replies until either side ends.
func (c *counter) forward(client net.Conn, address string) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	go func() { _, _ = io.Copy(client, server); _ = client.Close() }()
	// A message begins with its length, and its fourth word is its opcode; a
	// command is a document after a word of flags and a zero.
	const header, command = 16, 2013
	for {
		message := make([]byte, header)
		if _, err := io.ReadFull(client, message); err != nil {
			return
		}
		rest := make([]byte, binary.LittleEndian.Uint32(message)-header)
		if _, err := io.ReadFull(client, rest); err != nil {
			return
		}
		if binary.LittleEndian.Uint32(message[12:]) == command {
			if elements, err := bson.Raw(rest[5 : 5+binary.LittleEndian.Uint32(rest[5:])]).Elements(); err == nil &&
				len(elements) > 0 {
				c.add(elements[0].Key())
			}
		}
		if _, err := server.Write(append(message, rest...)); err != nil {
			return
		}
	}
}

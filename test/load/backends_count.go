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

// counter stands in front of a server and counts what is asked of it.
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

// silence is how long nothing is asked when all that follows from a request is
// done.
const silence = time.Second

// quiet waits until nothing more is asked of the server, for two minutes at
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
	return errors.New("the server is asked something all the time")
}

func (c *counter) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of = map[string]int{}
}

// per is how many of each there were for one of n. "hello" is the driver's,
// which looks whether its server lives.
func (c *counter) per(n int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, what := range slices.Sorted(maps.Keys(c.of)) {
		if what == "hello" {
			continue
		}
		all = append(all, fmt.Sprintf("%s %.2f", what, float64(c.of[what])/float64(n)))
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
	c := &counter{of: map[string]int{}, url: "mongodb://" + l.Addr().String() + "/?" + u.RawQuery, close: func() { _ = l.Close() }}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go c.pass(client, u.Host)
		}
	}()
	return c, nil
}

// pass passes messages on, and replies back, until either side ends.
func (c *counter) pass(client net.Conn, address string) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	go func() { _, _ = io.Copy(client, server); _ = client.Close() }()
	// A message begins with its length, and says in its fourth word what it
	// is; a command is a document behind a word of flags and a zero.
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
			if elements, err := bson.Raw(rest[5 : 5+binary.LittleEndian.Uint32(rest[5:])]).Elements(); err == nil && len(elements) > 0 {
				c.add(elements[0].Key())
			}
		}
		if _, err := server.Write(append(message, rest...)); err != nil {
			return
		}
	}
}

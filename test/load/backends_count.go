package main

import (
	"encoding/binary"
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

	"go.mongodb.org/mongo-driver/v2/bson"
)

// counter stands in front of a server and counts what is asked of it.
type counter struct {
	url   string
	close func()

	mu sync.Mutex
	of map[string]int
}

func (c *counter) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[what]++
}

func (c *counter) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of = map[string]int{}
}

// per is how many of each there were for one of n. What was asked seldom has
// to do with the time that passed, not with these.
func (c *counter) per(n int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, what := range slices.Sorted(maps.Keys(c.of)) {
		if share := float64(c.of[what]) / float64(n); share >= 0.05 {
			all = append(all, fmt.Sprintf("%s %.1f", what, share))
		}
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

package mongostore_test

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// proxy forwards the commands of a backend to its server, counts them, and makes
// some of them fail.
type proxy struct {
	address string
	server  string
	closed  chan struct{}

	mu    sync.Mutex
	rule  func(command string) fault
	count map[string]int
	bytes map[string]int // of requests and replies
	conns []net.Conn
}

// fault is what happens to a command. The zero fault is none.
type fault struct {
	answer bson.D // the reply, without forwarding the command
	lost   bool   // the server executes it, and the connection breaks before the reply
	held   bool   // neither forwarded nor replied to
}

func newProxy(t *testing.T, server string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{address: l.Addr().String(), server: server, closed: make(chan struct{})}
	p.faults(nil)
	var group sync.WaitGroup
	group.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			group.Go(func() { p.serve(conn) })
		}
	})
	t.Cleanup(func() {
		close(p.closed)
		_ = l.Close()
		p.cut()
		group.Wait()
	})
	return p
}

// faults sets the faults of the following commands, and resets the counts.
func (p *proxy) faults(rule func(command string) fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if rule == nil {
		rule = func(string) fault { return fault{} }
	}
	p.rule, p.count, p.bytes = rule, make(map[string]int), make(map[string]int)
}

// first lets a fault happen to the first n commands of a name.
func (p *proxy) first(n int, command string, f fault) {
	p.faults(func(name string) fault {
		if name == command && p.count[name] <= n {
			return f
		}
		return fault{}
	})
}

// commands is how many commands have come that an act of the backend sent.
func (p *proxy) commands() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	sent := make(map[string]int)
	for name, n := range p.count {
		if name != "hello" && name != "isMaster" && name != "ismaster" && name != "endSessions" {
			sent[name] = n
		}
	}
	return sent
}

// cut breaks all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range p.conns {
		_ = conn.Close()
	}
	p.conns = nil
}

func (p *proxy) keep(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = append(p.conns, conn)
}

func (p *proxy) faultOf(command string) fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count[command]++
	return p.rule(command)
}

func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	defer server.Close()
	p.keep(client)
	p.keep(server)
	for {
		request, err := readMessage(client)
		if err != nil {
			return
		}
		f := p.faultOf(commandOf(request))
		switch {
		case f.held:
			<-p.closed
			return
		case f.answer != nil:
			if _, err := client.Write(replyTo(request, f.answer)); err != nil {
				return
			}
			continue
		}
		if _, err := server.Write(request); err != nil {
			return
		}
		reply, err := readMessage(server)
		if err != nil || f.lost {
			return
		}
		p.measure(commandOf(request), len(request)+len(reply))
		if _, err := client.Write(reply); err != nil {
			return
		}
	}
}

func (p *proxy) measure(command string, bytes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bytes[command] += bytes
}

// cost is how many bytes the commands and their replies had that an act of the backend sent.
func (p *proxy) cost() (bytes int) {
	for command := range p.commands() {
		p.mu.Lock()
		bytes += p.bytes[command]
		p.mu.Unlock()
	}
	return bytes
}

// A message is its length, its id, the id it replies to and its kind, each of
// four bytes, and what the kind says: for OP_MSG four bytes of flags, a zero
// and the command as BSON.
const (
	header     = 16
	opMessage  = 2013
	bodyOffset = header + 5
)

func readMessage(conn net.Conn) ([]byte, error) {
	length := make([]byte, 4)
	if _, err := io.ReadFull(conn, length); err != nil {
		return nil, err
	}
	message := make([]byte, binary.LittleEndian.Uint32(length))
	copy(message, length)
	_, err := io.ReadFull(conn, message[4:])
	return message, err
}

// commandOf is the name of a message's command, that of hello for those of
// the kind that only hello has.
func commandOf(message []byte) string {
	if binary.LittleEndian.Uint32(message[12:]) != opMessage {
		return "hello"
	}
	size := binary.LittleEndian.Uint32(message[bodyOffset:])
	elements, err := bson.Raw(message[bodyOffset : bodyOffset+size]).Elements()
	if err != nil || len(elements) == 0 {
		return ""
	}
	return elements[0].Key()
}

func replyTo(request []byte, answer bson.D) []byte {
	body, err := bson.Marshal(answer)
	if err != nil {
		panic(err)
	}
	reply := make([]byte, bodyOffset, bodyOffset+len(body))
	binary.LittleEndian.PutUint32(reply, uint32(bodyOffset+len(body)))
	copy(reply[8:], request[4:8])
	binary.LittleEndian.PutUint32(reply[12:], opMessage)
	return append(reply, body...)
}

package config

import "time"

// EventStreams limits the resources of GET /events.
type EventStreams struct {
	Clients   int           // concurrent connections
	Address   int           // connections per network address; 0 is no limit
	Heartbeat time.Duration // interval of heartbeats
	Buffer    int64         // bytes of events cached for all clients
}

func readEventStreams(s *section) EventStreams {
	e := EventStreams{Clients: 10_000, Address: 200, Heartbeat: 15 * time.Second, Buffer: 16 << 20}
	clients, address := int64(e.Clients), int64(e.Address)
	decode(s, "clients", &clients, numberIn(1, 1_000_000))
	decode(s, "address", &address, numberIn(0, 1_000_000))
	e.Clients, e.Address = int(clients), int(address)
	decode(s, "heartbeat", &e.Heartbeat, durationIn(time.Second, 10*time.Minute, "from 1s to 10m"))
	decode(s, "buffer", &e.Buffer, sizeIn(4<<30))
	s.suggestions = map[string]string{"maxAge": "bus.events.maxAge", "maxBytes": "bus.events.maxBytes", "maxMessages": "bus.events.maxMessages"}
	s.rejectUnknown()
	return e
}

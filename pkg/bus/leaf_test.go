package bus_test

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"belfry/pkg/bus"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
)

// A leaf node has the streams of its own domain. Those of its hub are not used through it, which a leaf node without
// any says.
func TestALeafNodeHasTheStreamsOfItsDomain(t *testing.T) {
	port := kit.FreePort(t)
	natsserver.Serve(t, &server.Options{ServerName: "hub", JetStream: true, JetStreamDomain: "hub",
		StoreDir: t.TempDir(), LeafNode: server.LeafNodeOpts{Host: "127.0.0.1", Port: port}})
	leaf := func(o server.Options) *bus.Bus {
		o.LeafNode.Remotes = []*server.RemoteLeafOpts{
			{URLs: []*url.URL{{Scheme: "nats-leaf", Host: fmt.Sprintf("127.0.0.1:%d", port)}}}}
		return open(t, bus.Options{URL: natsserver.Serve(t, &o).ClientURL()})
	}
	says(t, leaf(server.Options{ServerName: "without"}), "belfry does not use that of another JetStream domain")
	with := leaf(server.Options{ServerName: "with", JetStream: true, JetStreamDomain: "leaf", StoreDir: t.TempDir()})
	eventually(t, func() bool { return with.Ready(t.Context()) == nil })
	if _, err := with.JetStream().Stream(t.Context(), bus.StreamEvents); err != nil {
		t.Error(err)
	}
}

package mongostore

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// Options say where a Backend is.
type Options struct {
	// URL is a connection string, mongodb:// or mongodb+srv://. It may hold a
	// user and a password, and the driver's options, but those for
	// consistency (w, journal, readConcernLevel, readPreference), which are
	// the backend's own.
	URL string

	// Database holds a collection for each store.
	Database string
}

const (
	// timeLimit ends an act that the server doesn't answer, unless the URL
	// says otherwise by timeoutMS.
	timeLimit = 30 * time.Second

	// selectLimit is how long a server is looked for, unless the URL says
	// otherwise by serverSelectionTimeoutMS or connectTimeoutMS: long enough
	// for a primary to hand over, short enough to tell soon that there is none.
	selectLimit = 5 * time.Second

	closeLimit = 5 * time.Second
)

// Backend keeps stores in one database.
type Backend struct {
	client     *mongo.Client
	database   *mongo.Database
	limit      time.Duration // of one act
	maxInserts int           // insertions in flight
	place      string        // "MongoDB at <hosts>", for messages
}

var _ driver.Backend = (*Backend)(nil)

// Open makes a Backend. It asks no server but, for mongodb+srv, that of names:
// whether the database answers is told by Ping and by every act, which find it
// again by themselves when it was away. A URL that can't be read is
// errs.Invalid.
func Open(ctx context.Context, o Options) (*Backend, error) {
	if err := ctx.Err(); err != nil {
		return nil, canceled(err)
	}
	if o.Database == "" {
		return nil, errs.New(errs.Invalid, "a MongoDB backend needs the name of its database")
	}
	settings := options.Client().ApplyURI(o.URL)
	if err := settings.Validate(); err != nil {
		return nil, urlError(o.URL, err)
	}
	place := "MongoDB at " + strings.Join(settings.Hosts, ",")
	limit := setDefaults(settings)
	client, err := mongo.Connect(settings)
	if err != nil {
		return nil, urlError(o.URL, err)
	}
	return &Backend{client: client, database: client.Database(o.Database), limit: limit, maxInserts: maxInserts(settings), place: place}, nil
}

// setDefaults completes what the URL leaves open, and sets what belfry relies
// on. It returns the limit of one act.
func setDefaults(o *options.ClientOptions) time.Duration {
	if o.AppName == nil {
		o.SetAppName("belfry")
	}
	if o.ServerSelectionTimeout == nil {
		o.SetServerSelectionTimeout(selectLimit)
	}
	if o.ConnectTimeout == nil {
		o.SetConnectTimeout(selectLimit)
	}
	journal := true
	o.SetWriteConcern(&writeconcern.WriteConcern{W: writeconcern.WCMajority, Journal: &journal})
	o.SetReadConcern(readconcern.Majority())
	o.SetReadPreference(readpref.Primary())
	if o.Timeout != nil && *o.Timeout > 0 {
		return *o.Timeout
	}
	return timeLimit
}

// maxInserts returns how many insertions are in flight before further ones are
// batched: half of the connections. With enough connections none has to wait.
func maxInserts(o *options.ClientOptions) int {
	const most = 100 // the driver's own default
	if o.MaxPoolSize == nil || *o.MaxPoolSize == 0 || *o.MaxPoolSize > most {
		return most / 2
	}
	return int(*o.MaxPoolSize+1) / 2 //nolint:gosec // small
}

// urlError tells what is wrong with a URL, and nothing of what it holds.
func urlError(text string, err error) error {
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return errs.New(errs.Unavailable, "the servers of the MongoDB backend's URL can't be looked up: %s", dns.Error())
	}
	reason := err.Error()
	if u, parseErr := url.Parse(text); parseErr != nil || u.User != nil {
		// The driver may quote a part of it.
		reason = "check its scheme, its options, and that special characters of user and password are percent-encoded"
	}
	return errs.New(errs.Invalid, "the MongoDB backend's URL can't be used: %s", reason)
}

// Ping is part of driver.Backend.
func (b *Backend) Ping(ctx context.Context) error {
	limited, cancel := b.limited(ctx)
	defer cancel()
	return b.fail(ctx, "be used", b.client.Ping(limited, readpref.Primary()))
}

// Close is part of driver.Backend.
func (b *Backend) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	if err := b.client.Disconnect(ctx); err != nil {
		return errs.Wrap(err, errs.Unavailable, "%s can't be left in order", b.place)
	}
	return nil
}

// limited is a context that ends at the limit of one act.
func (b *Backend) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, b.limit)
}

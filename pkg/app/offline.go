package app

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"belfry/config"
	"belfry/pkg/errs"
	"belfry/pkg/store"
)

// Export writes every object of a store as JSON lines in the order of their
// uuids, without the fields that never leave the server.
// With secrets the objects have all fields: hashes of passwords, and internal ones.
func Export(ctx context.Context, c *config.Config, name string, secrets bool, w io.Writer) error {
	if c.Stores[name] == nil {
		return unknownStore(c, name)
	}
	return withStores(ctx, c, "export",
		func(_ *plan, set *store.Set) error { return writeLines(ctx, set.Store(name), w, secrets) },
		func(h Holder) error {
			body, err := control(ctx, h, http.MethodGet, "/export/"+url.PathEscape(name)+"?secrets="+strconv.FormatBool(secrets), http.NoBody)
			if err != nil {
				return err
			}
			defer func() { _ = body.Close() }()
			_, err = io.Copy(w, body)
			return errs.Wrap(err, errs.Unavailable, "the export is incomplete: the connection was closed")
		})
}

func unknownStore(c *config.Config, name string) error {
	return errs.New(errs.Invalid, "no store %q is configured; there are %s", name, strings.Join(names(c.Stores), ", "))
}

// withStores opens the stores and calls direct. If a process with a control server holds the data folder,
// it calls served with that process instead.
func withStores(ctx context.Context, c *config.Config, doing string, direct func(*plan, *store.Set) error, served func(Holder) error) error {
	p, err := compile(c)
	if err != nil {
		return err
	}
	if err := p.hasData(); err != nil {
		return err
	}
	return p.withStores(ctx, doing, func(set *store.Set) error { return direct(p, set) }, served)
}

// withStores is withStores for a compiled configuration, whose stores need not exist yet.
func (p *plan) withStores(ctx context.Context, doing string, direct func(*store.Set) error, served func(Holder) error) error {
	lock, err := LockData(p.config.Data, doing)
	var held *Held
	if errors.As(err, &held) && held.Holder.Control != "" {
		return served(held.Holder)
	}
	if err != nil {
		return err
	}
	defer lock.Unlock()
	backends, err := p.openBackends(ctx, openBackendOnce)
	if err != nil {
		return err
	}
	p.opened = backends
	set, err := p.openStores(ctx, backends, openOnce, func(*store.Options) {})
	if err == nil {
		err = checkStoresComplete(ctx, set.Store(config.PositionStore))
	}
	if err == nil {
		err = direct(set)
	}
	return errors.Join(err, closeBackends(backends))
}

// hasData returns an error if the folder of a backend is missing. A command that reads would otherwise
// succeed without data. The error says why it is missing: a restore makes the folder, or has not got that far.
func (p *plan) hasData() error {
	var folders []string
	if !p.shared() {
		folders = append(folders, p.config.Data)
	}
	for _, name := range names(p.config.Stores) {
		if f := p.config.Backends[p.config.Stores[name].Backend].File; f != nil {
			folders = append(folders, f.Folder)
		}
	}
	for _, folder := range folders {
		if _, err := os.Stat(folder); err != nil {
			if why := p.whyNoData(); why != nil {
				return why
			}
			return errs.Wrap(err, errs.Invalid, "the data folder has no data yet; check --config and --data")
		}
	}
	return nil
}

// whyNoData returns who holds a data folder without data, or that a restore into it was interrupted; nil if neither is so.
func (p *plan) whyNoData() error {
	switch holder, err := holderOf(p.config.Data); {
	case err != nil:
		return err
	case holder != nil:
		return &Held{Folder: p.config.Data, Holder: *holder}
	}
	return checkComplete(p.config.Data)
}

// shared reports whether other processes may write the same stores.
func (p *plan) shared() bool {
	for _, s := range p.config.Stores {
		if p.config.Backends[s.Backend].File == nil {
			return true
		}
	}
	return false
}

func control(ctx context.Context, h Holder, method, path string, body io.Reader) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, method, h.Control+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+h.Token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, errs.Wrap(err, errs.Unavailable, "%s holds the data and does not respond; if it is stopping, try again", h)
	}
	if res.StatusCode == http.StatusOK {
		return res.Body, nil
	}
	defer func() { _ = res.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(res.Body, 4096))
	return nil, errs.New(errs.Unavailable, "%s replied: %s", h, strings.TrimSpace(string(text)))
}

func writeLines(ctx context.Context, s *store.Store, w io.Writer, secrets bool) error {
	const pageSize = 500
	out := bufio.NewWriterSize(w, 64<<10)
	for o, err := range s.All(ctx, pageSize) {
		if err != nil {
			return err
		}
		if !secrets {
			o.Body = s.Rules().Visible(o.Body)
		}
		if _, err := out.Write(append(slices.Clip(o.Body), '\n')); err != nil {
			return err
		}
	}
	return out.Flush()
}

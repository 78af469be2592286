package app

import (
	"context"

	"belfry/config"
	"belfry/pkg/console"
)

// console returns the options of the console, nil for none.
func (a *App) console() *console.Options {
	if !a.config.Console.Enabled {
		return nil
	}
	o := &console.Options{Version: Version(), Objects: a.consoleObjects()}
	if e := a.config.Authentication.Email; e != nil && a.config.Mailers[e.Mailer].File != nil {
		o.Mails = writtenMails(a.config.Mailers[e.Mailer].File.Folder)
	}
	return o
}

// consoleObjects returns what the view Objects needs: the stores of the configuration.
func (a *App) consoleObjects() *console.Objects {
	o := &console.Objects{}
	for _, name := range names(a.config.Stores) {
		if config.Internal(name) {
			continue
		}
		st := a.set.Store(name)
		info := console.StoreInfo{Name: name, Count: func(ctx context.Context) (int64, error) {
			n, _, err := st.Count(ctx)
			return n, err
		}}
		if e := a.config.Stores[name].Expose; e != nil {
			info.URL, info.List = e.URL, e.List
		}
		o.Stores = append(o.Stores, info)
	}
	return o
}

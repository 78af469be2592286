package backing

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"belfry/test/kit/programs"
)

// HTTPProxy is a server that passes requests on, and compresses replies.
type HTTPProxy struct {
	Name    string
	Codings []string // content codings that it is configured for
	URL     string
}

// nginxConfig compresses whatever it may: a reply of any type and length.
const nginxConfig = `
daemon off;
master_process off;
error_log stderr;
pid nginx.pid;
events {}
http {
  access_log off;
  client_body_temp_path temp/body; proxy_temp_path temp/proxy; fastcgi_temp_path temp/fastcgi; uwsgi_temp_path temp/uwsgi; scgi_temp_path temp/scgi;
  gzip on; gzip_types *; gzip_min_length 1; gzip_proxied any;
  server {
    listen %[1]s;
    client_max_body_size 0;
    location / {
      proxy_pass http://%[2]s;
      proxy_http_version 1.1;
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    }
  }
}
`

// StartNginx starts an nginx in front of an address.
func StartNginx(t testing.TB, upstream string) *HTTPProxy {
	t.Helper()
	return startNginx(t, upstream, nginxConfig)
}

// wellKnownPath is where a well-known URI of the server at a path is (RFC 8414): not below the path.
const wellKnownPath = "/.well-known/oauth-authorization-server"

// StartNginxAt starts an nginx that passes on what is below a path, as it is or without the path, and the well-known
// URI of that path. All else is not found there. Its configuration is that of docs/guides/proxies.md.
func StartNginxAt(t testing.TB, upstream, path string, strip bool) *HTTPProxy {
	t.Helper()
	config := strings.Replace(nginxConfig, "location / {", "location "+path+"/ {", 1)
	if strip {
		config = strings.Replace(config, "proxy_pass http://%[2]s;", "proxy_pass http://%[2]s/;", 1)
	}
	config = strings.Replace(config, "client_max_body_size 0;", `client_max_body_size 0;
    location / { return 404; }
    location `+wellKnownPath+path+` { proxy_pass http://%[2]s; proxy_set_header Host $http_host; }`, 1)
	p := startNginx(t, upstream, config)
	p.URL += path
	return p
}

func startNginx(t testing.TB, upstream, text string) *HTTPProxy {
	t.Helper()
	p := &HTTPProxy{Name: "nginx", Codings: []string{"gzip"}}
	p.start(t, upstream, text, func(root, folder, config string) *exec.Cmd {
		return exec.Command(filepath.Join(root, "usr/sbin/nginx"), "-e", "stderr", "-p", folder, "-c", config)
	})
	return p
}

// StartNginxReporting is StartNginx for one that reports the address of its client by another header than
// X-Forwarded-For, or by a value of another form.
func StartNginxReporting(t testing.TB, upstream, header, value string) *HTTPProxy {
	t.Helper()
	p := &HTTPProxy{Name: "nginx, " + header + ": " + value, Codings: []string{"gzip"}}
	config := strings.Replace(nginxConfig, "X-Forwarded-For $proxy_add_x_forwarded_for", header+" '"+value+"'", 1)
	p.start(t, upstream, config, func(root, folder, config string) *exec.Cmd {
		return exec.Command(filepath.Join(root, "usr/sbin/nginx"), "-e", "stderr", "-p", folder, "-c", config)
	})
	return p
}

const apacheConfig = `
ServerName 127.0.0.1
ServerRoot %[3]s
LoadModule mpm_event_module %[4]s/mod_mpm_event.so
LoadModule authz_core_module %[4]s/mod_authz_core.so
LoadModule filter_module %[4]s/mod_filter.so
LoadModule deflate_module %[4]s/mod_deflate.so
LoadModule brotli_module %[4]s/mod_brotli.so
LoadModule proxy_module %[4]s/mod_proxy.so
LoadModule proxy_http_module %[4]s/mod_proxy_http.so
Listen %[1]s
PidFile apache.pid
ErrorLog /dev/stderr
Mutex pthread default
SetOutputFilter BROTLI_COMPRESS;DEFLATE
ProxyPreserveHost On
ProxyPass / http://%[2]s/ nocanon
`

// StartApache starts an Apache in front of an address.
func StartApache(t testing.TB, upstream string) *HTTPProxy {
	t.Helper()
	return startApache(t, upstream, apacheConfig)
}

// StartApacheAt is StartNginxAt for an Apache.
func StartApacheAt(t testing.TB, upstream, path string, strip bool) *HTTPProxy {
	t.Helper()
	to := path
	if strip {
		to = ""
	}
	p := startApache(t, upstream, strings.Replace(apacheConfig, "ProxyPass / http://%[2]s/ nocanon\n", `
ProxyPass `+wellKnownPath+path+` http://%[2]s`+wellKnownPath+path+`
ProxyPass `+path+` http://%[2]s`+to+` nocanon
ProxyPassReverse `+path+` http://%[2]s`+to+`
`, 1))
	p.URL += path
	return p
}

func startApache(t testing.TB, upstream, text string) *HTTPProxy {
	t.Helper()
	p := &HTTPProxy{Name: "Apache", Codings: []string{"gzip", "br"}}
	p.start(t, upstream, text, func(root, folder, config string) *exec.Cmd {
		return exec.Command(filepath.Join(root, "usr/sbin/apache2"), "-X", "-d", folder, "-f", config)
	})
	return p
}

// With a lower minimum_length Caddy 2.6 compresses streams as well, and holds them back.
const caddyConfig = `
{
  admin off
  auto_https off
  storage file_system %[3]s
}
http://:%[5]s {
  bind 127.0.0.1
  encode gzip zstd
  reverse_proxy %[2]s
}
`

// StartCaddy starts a Caddy in front of an address.
func StartCaddy(t testing.TB, upstream string) *HTTPProxy {
	t.Helper()
	return startCaddy(t, upstream, caddyConfig)
}

// StartCaddyAt is StartNginxAt for a Caddy.
func StartCaddyAt(t testing.TB, upstream, path string, strip bool) *HTTPProxy {
	t.Helper()
	handle := "handle"
	if strip {
		handle = "handle_path"
	}
	p := startCaddy(t, upstream, strings.Replace(caddyConfig, "  reverse_proxy %[2]s\n", `
  redir `+path+` `+path+`/
  `+handle+` `+path+`/* {
    reverse_proxy %[2]s
  }
  handle `+wellKnownPath+path+` {
    reverse_proxy %[2]s
  }
  handle {
    respond 404
  }
`, 1))
	p.URL += path
	return p
}

func startCaddy(t testing.TB, upstream, text string) *HTTPProxy {
	t.Helper()
	p := &HTTPProxy{Name: "Caddy", Codings: []string{"gzip", "zstd"}}
	p.start(t, upstream, text, func(root, _, config string) *exec.Cmd {
		return exec.Command(filepath.Join(root, "usr/bin/caddy"), "run", "--adapter", "caddyfile", "--config", config)
	})
	return p
}

// start starts the server with a configuration, which gets its address, that of the upstream, its folder and that of
// its modules, and its port.
func (p *HTTPProxy) start(t testing.TB, upstream, text string, command func(root, folder, config string) *exec.Cmd) {
	t.Helper()
	root, folder, address := must(t)(programs.HTTPProxies()), t.TempDir(), freeAddress(t)
	config := filepath.Join(folder, "config")
	_, port, err := net.SplitHostPort(address)
	if err == nil { // each server names some of these
		values := strings.NewReplacer("%[1]s", address, "%[2]s", upstream, "%[3]s", folder, "%[4]s",
			filepath.Join(root, "usr/lib/apache2/modules"), "%[5]s", port)
		err = os.WriteFile(config, []byte(values.Replace(text)), 0o600)
	}
	if err == nil {
		err = os.Mkdir(filepath.Join(folder, "temp"), 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	libraries, err := filepath.Glob(filepath.Join(root, "usr/lib/*-linux-gnu"))
	if err != nil || len(libraries) != 1 {
		t.Fatalf("the libraries of %s are in %v, %v", p.Name, libraries, err)
	}
	cmd := command(root, folder, config)
	cmd.Dir = folder
	cmd.Env = []string{
		"LD_LIBRARY_PATH=" + libraries[0] + ":" + filepath.Join(root, "lib", filepath.Base(libraries[0])),
		"HOME=" + folder, "XDG_CONFIG_HOME=" + folder, "XDG_DATA_HOME=" + folder, "TZ=UTC", "LC_ALL=C",
	}
	p.URL = "http://" + address
	start(t, cmd, func(ctx context.Context) error {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

package auditpage

import (
	"embed"
	"net/http"
	"path"
)

//go:embed assets
var assets embed.FS

// types are the media types of the files; net/http would ask the host's tables.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

// files returns the handler of the page itself. It holds nothing of the log.
func (p *Page) files() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := path.Clean(r.URL.Path)
		if name == "/" {
			name = "/index.html"
		}
		raw, err := assets.ReadFile("assets" + name)
		if err != nil {
			refuse(w, http.StatusNotFound, "there is no such file")
			return
		}
		w.Header().Set("Content-Type", types[path.Ext(name)])
		_, _ = w.Write(raw) //nolint:gosec // a file of assets
	})
}

/** Headers of a page. The browser must not execute text of others, nor load anything from other servers. */
export const PAGE_HEADERS = {
  'Content-Security-Policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; '),
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Cache-Control': 'no-store',
} as const

/** The files of a page and their types. They contain no data. */
export const PAGE_FILES: ReadonlyMap<string, readonly [file: string, type: string]> = new Map([
  ['', ['page.html', 'text/html']],
  ['page.js', ['page.js', 'text/javascript']],
  ['page.css', ['page.css', 'text/css']],
])

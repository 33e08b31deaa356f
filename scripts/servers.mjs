/**
 * The Debian package of each server or other program that `npm test` starts.
 * @type {ReadonlyMap<string, string>}
 */
export const servers = new Map([
  ['redis-server', 'redis-server'],
  ['postgres', 'postgresql'],
  ['pgbouncer', 'pgbouncer'],
  // For the library that is preloaded into a server to set its clock.
  ['gcc', 'gcc libc6-dev'],
])

/**
 * The same, of each that only larger test runs start.
 * @type {ReadonlyMap<string, string>}
 */
export const moreServers = new Map([
  // For certificates.
  ['openssl', 'openssl'],
  // Shells for which the command brings completion.
  ['zsh', 'zsh'],
  ['fish', 'fish'],
  ['luacheck', 'lua-check'],
  ['chromium', 'chromium'],
])

/**
 * The Debian package of each server or other program that `npm test` starts.
 * @type {ReadonlyMap<string, string>}
 */
export const servers = new Map([
  ['redis-server', 'redis-server'],
  ['postgres', 'postgresql'],
  ['pgbouncer', 'pgbouncer'],
  // Compiles the library that is preloaded into a server to set its clock.
  ['gcc', 'gcc libc6-dev'],
])

/**
 * The Debian package of each program that only longer test runs start.
 * @type {ReadonlyMap<string, string>}
 */
export const moreServers = new Map([
  // Creates certificates.
  ['openssl', 'openssl'],
  // Shells that the command has completions for.
  ['zsh', 'zsh'],
  ['fish', 'fish'],
  ['luacheck', 'lua-check'],
  ['chromium', 'chromium'],
])

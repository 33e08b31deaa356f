/**
 * The Debian package of each server or other program that tests start.
 * @type {ReadonlyMap<string, string>}
 */
export const servers = new Map([
  ['redis-server', 'redis-server'],
  ['postgres', 'postgresql'],
  // For certificates, and for what is preloaded into a server to set its clock.
  ['openssl', 'openssl'],
  ['gcc', 'gcc libc6-dev'],
  // For which the command brings completion.
  ['zsh', 'zsh'],
  ['fish', 'fish'],
])

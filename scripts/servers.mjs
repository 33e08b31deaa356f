/**
 * The Debian package of each server that tests start.
 * @type {ReadonlyMap<string, string>}
 */
export const servers = new Map([['redis-server', 'redis-server']])

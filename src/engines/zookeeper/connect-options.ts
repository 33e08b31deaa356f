import type { ConnectOptions } from './client/index.js'
import type { ZooKeeperPlace } from './zookeeper-url.js'

/** How a client of a place connects. */
export function connectOptions({
  login,
  isSasl,
  isSecure,
  sessionTimeout,
}: Pick<ZooKeeperPlace, 'login' | 'isSasl' | 'isSecure' | 'sessionTimeout'>): ConnectOptions {
  return {
    sessionTimeout,
    ...(isSecure && { tls: {} }),
    ...(login !== undefined && (isSasl ? { sasl: saslUser(login) } : { auth: [digest(login)] })),
  }
}

function digest(login: string): { scheme: string; data: string } {
  return { scheme: 'digest', data: login }
}

function saslUser(login: string): { user: string; password: string } {
  const end = login.indexOf(':')
  return { user: login.slice(0, end), password: login.slice(end + 1) }
}

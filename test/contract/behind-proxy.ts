import { Proxy } from '../../apps/chaos/servers/proxy.js'
import type { Network } from '../../packages/conformance/src/fixture.js'
import type { Awaitable, Engine } from '../../src/engine/contract.js'

/**
 * Returns a network with an engine whose servers run on this machine. The network ends with the test process.
 * @param url URL with the ports of all servers
 * @param open opens an engine on a URL
 * @param hints matches data that a client sends only on its connection for hints, if it has such a connection
 */
export async function behindProxy(
  url: string,
  open: (url: string) => Awaitable<Engine>,
  hints?: RegExp,
): Promise<Network> {
  const ports = [...url.matchAll(/(?<=[\w\]]:)\d+(?=[,/?]|$)/g)].map(([port]) => Number(port))
  const proxies = await Promise.all(ports.map(port => Proxy.start(port)))
  const through = proxies.reduce((text, { port }, index) => text.replace(`:${ports[index]}`, `:${port}`), url)
  return networkOf(proxies, await open(through), hints)
}

/** Returns the network through these proxies. */
export function networkOf(proxies: readonly Proxy[], engine: Engine, hints?: RegExp): Network {
  const targets = proxies.map(({ target }) => target)
  const each = (disturb: (proxy: Proxy) => void): void => {
    for (const proxy of proxies) disturb(proxy)
  }
  return {
    engine,
    cut: () =>
      each(proxy => {
        proxy.target = undefined
        proxy.cut()
      }),
    restore: () => {
      for (const [index, proxy] of proxies.entries()) proxy.target = targets[index]
    },
    slowDown: ({ way, requestJitter = 0, replyJitter = 0 }) =>
      each(proxy => Object.assign(proxy, { delay: way, requestJitter, replyJitter })),
    swallow: way => each(proxy => proxy.swallow(way)),
    strand: () => {
      const stranded = proxies.map(proxy => proxy.strand())
      return async () => {
        await Promise.all(stranded.map(deliver => deliver()))
      }
    },
    ...(hints && { loseHints: () => each(proxy => (proxy.mute = hints)) }),
  }
}

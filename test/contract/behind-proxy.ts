import { Proxy } from '../../apps/chaos/servers/proxy.js'
import type { CuttableEngine } from '../../src/conformance/fixture.js'
import type { Awaitable, Engine } from '../../src/engine/contract.js'

/**
 * An engine on a server of this machine, over a network that ends with the test process.
 * @param open makes an engine for a URL
 */
export async function behindProxy(
  url: string,
  open: (url: string) => Awaitable<Engine>,
): Promise<CuttableEngine> {
  const port = Number(new URL(url).port)
  const proxy = await Proxy.start(port)
  return {
    engine: await open(url.replace(`:${port}`, `:${proxy.port}`)),
    cut() {
      proxy.target = undefined
      proxy.cut()
    },
    mend() {
      proxy.target = port
    },
  }
}

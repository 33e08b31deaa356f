import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../../apps/chaos/servers/free-port.js'
import { reapedFolder } from '../../../apps/chaos/servers/reaper.js'
import { ServerProcess } from '../../../apps/chaos/servers/server-process.js'
import type { FakeClock } from './fake-clock.js'

/** Paths to which `scripts/setup.mjs servers` downloads the member's jar. Compiled tests are one folder deeper. */
const JARS = ['../../..', '../../../..']
  .map(root => `${fileURLToPath(new URL(`${root}/.interop/hazelcast/`, import.meta.url))}*`)
  .join(':')

export interface HazelcastMemberOptions {
  /** The name of the cluster; default `signalbox-test`. */
  readonly cluster?: string
  /** Ports of the members that run already. */
  readonly peers?: readonly number[]
  /** The port of 127.0.0.1 that it announces to clients, for a proxy in front of it; its own by default. */
  readonly publicPort?: number
  /** Properties of the member, like `hazelcast.client.cleanup.period.millis`. */
  readonly properties?: Readonly<Record<string, string>>
  /** Further configuration as XML, for example of maps. */
  readonly more?: string
  /** A clock that replaces the member's real one. */
  readonly clock?: FakeClock
}

export const TEST_CLUSTER = 'signalbox-test'

const CONFIGURATION = 'hazelcast.xml'

/** A real Hazelcast Community member on a port of 127.0.0.1, all its state in memory. */
export class HazelcastServer extends ServerProcess {
  readonly host = '127.0.0.1'
  readonly port: number
  /** `host:port`. */
  readonly address: string
  readonly #folder: string
  readonly #configure: (peers: readonly number[]) => string
  #members: number

  constructor(
    port: number,
    {
      cluster = TEST_CLUSTER,
      peers = [],
      publicPort = port,
      properties = {},
      more = '',
      clock,
    }: HazelcastMemberOptions,
  ) {
    const folder = reapedFolder('hazelcast')
    const configure = (known: readonly number[]) =>
      configuration(cluster, port, publicPort, known, properties, more)
    super({
      program: 'java',
      argv: [
        '-Xms64m',
        // Some tests have hundreds of maps on a member, and each costs about a megabyte once it was searched.
        '-Xmx384m',
        '-XX:+UseSerialGC',
        // Otherwise each pause writes to a file, and waits for a busy disk.
        '-XX:+PerfDisableSharedMem',
        '-XX:TieredStopAtLevel=1',
        `-Dhazelcast.config=${CONFIGURATION}`,
        '-cp',
        JARS,
        'com.hazelcast.core.server.HazelcastMemberStarter',
      ],
      folder,
      environment: clock?.environment ?? {},
      files: { [CONFIGURATION]: configure(peers) },
      debianPackage: 'default-jre-headless',
    })
    this.port = port
    this.address = `127.0.0.1:${port}`
    this.#folder = folder
    this.#configure = configure
    this.#members = peers.length + 1
  }

  /** Starts it again, empty, as a member of the cluster of these running members. */
  async rejoin(others: readonly HazelcastServer[]): Promise<void> {
    writeFileSync(join(this.#folder, CONFIGURATION), this.#configure(others.map(({ port }) => port)))
    this.#members = others.length + 1
    await this.start()
  }

  /** Whether all data has its copies, as far as it knows. Then any one member may end. */
  async isSafe(): Promise<boolean> {
    return (await this.#status('/hazelcast/health/cluster-safe')) === 200
  }

  /** Returns the number of members of its cluster, as far as it knows. */
  async clusterSize(): Promise<number> {
    return Number(await this.#ask('/hazelcast/health/cluster-size'))
  }

  /** Rejects unless the member is up in a cluster with all configured members. */
  protected async answers(): Promise<void> {
    if ((await this.clusterSize()) !== this.#members) throw new Error('members are missing')
    if ((await this.#ask('/hazelcast/health/node-state')) !== '"ACTIVE"')
      throw new Error('it does not serve yet')
  }

  async #ask(path: string): Promise<string> {
    return (await this.#answer(path)).body
  }

  async #status(path: string): Promise<number> {
    return (await this.#answer(path)).status
  }

  /** Uses a socket of its own, because an agent would keep the connection. */
  #answer(path: string): Promise<{ status: number; body: string }> {
    return new Promise((resolve, reject) => {
      let answer = ''
      const socket = connect(this.port, this.host, () =>
        socket.write(`GET ${path} HTTP/1.1\r\nHost: ${this.address}\r\nConnection: close\r\n\r\n`),
      )
      socket.setEncoding('utf8').on('data', (text: string) => {
        answer += text
        const [head, body] = answer.split('\r\n\r\n')
        if (body === undefined || body.length < Number(/content-length: (\d+)/i.exec(head!)?.[1])) return
        socket.destroy()
        resolve({ status: Number(head!.split(' ')[1]), body: body.trim() })
      })
      socket.setTimeout(2000, () => socket.destroy(new Error('it says nothing')))
      socket.on('error', reject)
      socket.on('close', () => reject(new Error('it says nothing')))
    })
  }
}

/** Starts a member alone. It serves when the promise settles. */
export async function startHazelcast(options: HazelcastMemberOptions = {}): Promise<HazelcastServer> {
  const server = new HazelcastServer(await freePort(), options)
  await server.start()
  return server
}

/** Starts members one after another, each with the ports of the earlier ones: twice as fast as all at once. */
export async function startHazelcastCluster(
  size: number,
  options: HazelcastMemberOptions = {},
): Promise<HazelcastServer[]> {
  const members: HazelcastServer[] = []
  while (members.length < size) {
    const peers = members.map(({ port }) => port)
    members.push(await startHazelcast({ ...options, peers }))
  }
  return members
}

function configuration(
  cluster: string,
  port: number,
  publicPort: number,
  peers: readonly number[],
  properties: Readonly<Record<string, string>>,
  more: string,
): string {
  const all = {
    'hazelcast.phone.home.enabled': 'false',
    'hazelcast.socket.bind.any': 'false',
    'hazelcast.wait.seconds.before.join': '0',
    'hazelcast.logging.type': 'none',
    ...properties,
  }
  const lines = Object.entries(all).map(([name, value]) => `<property name="${name}">${value}</property>`)
  const members = [...peers, port].map(each => `<member>127.0.0.1:${each}</member>`)
  return `<hazelcast xmlns="http://www.hazelcast.com/schema/config">
  <cluster-name>${cluster}</cluster-name>
  <properties>${lines.join('')}</properties>
  <network>
    <port auto-increment="false">${port}</port>
    <public-address>127.0.0.1:${publicPort}</public-address>
    <join>
      <auto-detection enabled="false"/>
      <multicast enabled="false"/>
      <tcp-ip enabled="true">${members.join('')}</tcp-ip>
    </join>
    <interfaces enabled="true"><interface>127.0.0.1</interface></interfaces>
    <rest-api enabled="true"><endpoint-group name="HEALTH_CHECK" enabled="true"/></rest-api>
  </network>
  ${more}
</hazelcast>
`
}

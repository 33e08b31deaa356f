import { freePort } from '../../../apps/chaos/servers/free-port.js'
import { Proxy } from '../../../apps/chaos/servers/proxy.js'
import { reapedFolder } from '../../../apps/chaos/servers/reaper.js'
import { until } from './until.js'
import { ZooKeeperServer, type ZooKeeperServerOptions } from './zookeeper.js'

/** The ports of one server. */
interface Ports {
  readonly client: number
  readonly quorum: number
  readonly election: number
}

/** Three servers that share one state. */
export class ZooKeeperEnsemble {
  readonly servers: readonly ZooKeeperServer[]
  /** All addresses, joined by commas. */
  readonly address: string

  constructor(servers: readonly ZooKeeperServer[]) {
    this.servers = servers
    this.address = servers.map(server => server.address).join(',')
  }

  /** Starts all (again) and waits until each serves. */
  async start(): Promise<void> {
    await Promise.all(this.servers.map(server => server.start()))
  }

  /** Returns the current leader. Waits until there is one. */
  async leader(): Promise<ZooKeeperServer> {
    let found: ZooKeeperServer | undefined
    await until(async () => {
      const modes = await Promise.all(this.servers.map(server => server.mode()))
      found = this.servers[modes.indexOf('leader')]
      return found !== undefined
    })
    return found!
  }

  async stop(): Promise<void> {
    await Promise.all(this.servers.map(server => server.stop()))
  }

  async kill(): Promise<void> {
    await Promise.all(this.servers.map(server => server.kill()))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
  }
}

/** The current roles of three servers. */
export interface Roles {
  readonly leader: ZooKeeperServer
  readonly follower: ZooKeeperServer
  /** The other follower. */
  readonly other: ZooKeeperServer
}

/** Three servers, each of which follows any other over a link of its own. */
export class LinkedEnsemble extends ZooKeeperEnsemble {
  readonly #links: ReadonlyMap<string, Proxy>

  private constructor({ servers }: ZooKeeperEnsemble, links: ReadonlyMap<string, Proxy>) {
    super(servers)
    this.#links = links
  }

  /** Starts three servers; all serve when the promise settles. */
  static async start(options: ZooKeeperServerOptions = {}): Promise<LinkedEnsemble> {
    const links = new Map<string, Proxy>()
    const ensemble = await startZooKeeperEnsemble(options, async (from, to, port) => {
      const proxy = await Proxy.start(port)
      links.set(`${from}-${to}`, proxy)
      return proxy.port
    })
    return new LinkedEnsemble(ensemble, links)
  }

  /** Returns the roles of the servers. Waits until one leads and both others follow. */
  async roles(): Promise<Roles> {
    let modes: (string | undefined)[] = []
    await until(async () => {
      modes = await Promise.all(this.servers.map(server => server.mode()))
      return [...modes].sort().join() === 'follower,follower,leader'
    })
    const leader = this.servers[modes.indexOf('leader')]!
    const [follower, other] = this.servers.filter(server => server !== leader) as [
      ZooKeeperServer,
      ZooKeeperServer,
    ]
    return { leader, follower, other }
  }

  /** Returns the link over which one server follows another. Its requests are the messages of the follower. */
  link(from: ZooKeeperServer, to: ZooKeeperServer): Proxy {
    return this.#links.get([from, to].map(server => this.servers.indexOf(server)).join('-'))!
  }
}

interface LaggingEnsemble extends AsyncDisposable, Roles {
  readonly link: Proxy
}

/**
 * Starts three servers. The follower gets its updates over `link`, and lags behind while the replies of `link` are late
 * or held back.
 */
export async function startLaggingEnsemble(): Promise<LaggingEnsemble> {
  const ensemble = await LinkedEnsemble.start()
  const roles = await ensemble.roles()
  const link = ensemble.link(roles.follower, roles.leader)
  return { ...roles, link, [Symbol.asyncDispose]: () => ensemble.kill() }
}

/**
 * Starts three servers; all serve when the promise settles.
 * @param reach returns the port at which one server reaches another as the leader, for a proxy between them
 */
export async function startZooKeeperEnsemble(
  { config = [], ...options }: ZooKeeperServerOptions = {},
  reach: (from: number, to: number, port: number) => Promise<number> = (_from, _to, port) =>
    Promise.resolve(port),
): Promise<ZooKeeperEnsemble> {
  const ports: Ports[] = []
  for (let count = 0; count < 3; count++)
    ports.push({ client: await freePort(), quorum: await freePort(), election: await freePort() })
  const servers: ZooKeeperServer[] = []
  for (const [index, { client }] of ports.entries()) {
    const members: string[] = []
    for (const [other, { quorum, election }] of ports.entries()) {
      const port = other === index ? quorum : await reach(index, other, quorum)
      members.push(`server.${other + 1}=127.0.0.1:${port}:${election}`)
    }
    servers.push(
      new ZooKeeperServer(client, reapedFolder('zookeeper'), {
        ...options,
        config: ['initLimit=20', 'syncLimit=10', ...members, ...config],
        files: { 'data/myid': `${index + 1}\n`, ...options.files },
      }),
    )
  }
  const ensemble = new ZooKeeperEnsemble(servers)
  await ensemble.start()
  return ensemble
}

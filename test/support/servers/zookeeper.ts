import { mkdirSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../../apps/chaos/servers/free-port.js'
import { reapedFolder } from '../../../apps/chaos/servers/reaper.js'
import { ServerProcess } from '../../../apps/chaos/servers/server-process.js'

/** Paths to which `scripts/setup.mjs servers` downloads the server's jars. Compiled tests are one folder deeper. */
const jars = ['../../../.interop/zookeeper/', '../../../../.interop/zookeeper/'].map(path =>
  fileURLToPath(new URL(path, import.meta.url)),
)

/** Debian's ZooKeeper, which is older; `scripts/setup.mjs debian-zookeeper` installs it. */
const debianJars = ['zookeeper.jar', 'slf4j-simple.jar'].map(name => `/usr/share/java/${name}`)

export interface ZooKeeperServerOptions {
  /** Whether it is Debian's version. */
  readonly isDebian?: boolean
  /** Lines of zoo.cfg, like `maxClientCnxns=3`; they come after ours and win. */
  readonly config?: readonly string[]
  /** Properties of the virtual machine. */
  readonly properties?: Readonly<Record<string, string>>
  /** Files that must exist before the first start, for example with the zxid epoch, by path in the server's folder. */
  readonly files?: Readonly<Record<string, string | Uint8Array>>
}

/** A real ZooKeeper on a free port of 127.0.0.1, with its data in a folder of its own; it waits for the disk. */
export class ZooKeeperServer extends ServerProcess {
  readonly host = '127.0.0.1'
  readonly port: number
  /** `host:port`. */
  readonly address: string
  readonly #folder: string

  constructor(
    port: number,
    folder: string,
    { isDebian = false, config = [], properties = {}, files = {} }: ZooKeeperServerOptions,
  ) {
    mkdirSync(join(folder, 'data'), { recursive: true })
    const lines = [
      'tickTime=500',
      'minSessionTimeout=1000',
      'maxSessionTimeout=60000',
      'dataDir=data',
      `clientPort=${port}`,
      'clientPortAddress=127.0.0.1',
      'maxClientCnxns=0',
      'admin.enableServer=false',
      'extendedTypesEnabled=true',
      '4lw.commands.whitelist=srvr,cons,wchs,mntr',
      ...config,
    ]
    const settings = {
      'znode.container.checkIntervalMs': '2000',
      // By default, a test whose predecessor has left ten thousand containers would wait for a minute.
      'znode.container.maxPerMinute': '1000000',
      'org.slf4j.simpleLogger.defaultLogLevel': 'warn',
      ...properties,
    }
    super({
      program: 'java',
      argv: [
        '-Xmx256m',
        '-XX:+UseSerialGC',
        // Otherwise each pause writes to a file, and waits for a busy disk.
        '-XX:+PerfDisableSharedMem',
        '-XX:TieredStopAtLevel=1',
        '-Xshare:auto',
        ...Object.entries(settings).map(([name, value]) => `-D${name}=${value}`),
        '-cp',
        (isDebian ? debianJars : jars.map(path => `${path}*`)).join(':'),
        'org.apache.zookeeper.server.quorum.QuorumPeerMain',
        'zoo.cfg',
      ],
      folder,
      files: { 'zoo.cfg': `${lines.join('\n')}\n`, ...files },
      debianPackage: isDebian ? 'libzookeeper-java' : 'default-jre-headless',
    })
    this.port = port
    this.address = `127.0.0.1:${port}`
    this.#folder = folder
  }

  /** Returns a server of the newest version with the port and the data of this one, which must be stopped. */
  upgraded(): ZooKeeperServer {
    return new ZooKeeperServer(this.port, this.#folder, {})
  }

  /** Deletes its data. It must not run. */
  wipe(): void {
    rmSync(join(this.#folder, 'data/version-2'), { recursive: true, force: true })
  }

  /** Rejects unless it serves. In an ensemble, it answers before there is a leader. */
  protected async answers(): Promise<void> {
    if ((await this.mode()) === undefined) throw new Error('it does not serve yet')
  }

  /** Returns its answer to a four-letter word. */
  say(word: 'srvr' | 'cons' | 'wchs' | 'mntr'): Promise<string> {
    return new Promise((resolve, reject) => {
      let answer = ''
      const socket = connect(this.port, this.host, () => socket.end(word))
      socket.setEncoding('utf8').on('data', (text: string) => (answer += text))
      socket.setTimeout(2000, () => socket.destroy(new Error('it says nothing')))
      socket.on('error', reject)
      socket.on('close', () => resolve(answer))
    })
  }

  /** Returns its mode, or undefined if it does not serve. */
  async mode(): Promise<'standalone' | 'leader' | 'follower' | undefined> {
    const answer = await this.say('srvr').catch(() => '')
    return /^Mode: (\w+)/m.exec(answer)?.[1] as 'standalone' | 'leader' | 'follower' | undefined
  }
}

/** Starts a server alone; it serves when the promise settles. */
export async function startZooKeeper(options: ZooKeeperServerOptions = {}): Promise<ZooKeeperServer> {
  const server = new ZooKeeperServer(await freePort(), reapedFolder('zookeeper'), options)
  await server.start()
  return server
}

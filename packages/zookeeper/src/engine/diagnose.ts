import { randomUUID } from 'node:crypto'
import { connect, isIP } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { parseEnsemble, ZooKeeper } from '../index.js'
import { failureOf } from './failure.js'
import { NodePaths } from './names.js'
import { untrustedNode, type UntrustedNode } from './untrusted-nodes.js'
import { parseZooKeeperUrl } from './zookeeper-url.js'
import type { Diagnosis, Finding } from 'signalbox'
import {
  checkUrl,
  clockFact,
  clockFindings,
  shortDuration,
  systemClock,
  type ClockFacts,
} from 'signalbox/engine'

const MIN_VERSION = [3, 6] as const
/** Maximum time to wait for a reply of a server, in milliseconds. */
const TIMEOUT = 3000

/**
 * Diagnoses the servers of a `zookeeper:` or `zookeeper+tls:` URL.
 * @throws UnavailableError if none can be reached.
 */
export async function diagnoseZooKeeper(url: string): Promise<Diagnosis> {
  checkUrl(url)
  const place = parseZooKeeperUrl(url)
  const { ensemble, connect: options } = place
  const isSecure = options.tls !== undefined
  await using client = await ZooKeeper.connect(ensemble, options).catch((error: unknown) => {
    throw failureOf(error, place.name)
  })
  const servers = await Promise.all(
    parseEnsemble(ensemble).hosts.map(({ host, port }) => examineServer(host, port, isSecure)),
  )
  // The trial reports other failures.
  const untrusted = await untrustedNode(client, place, new NodePaths(place.root)).catch(() => undefined)
  const clock = (await clockOf(client, place.root)) ?? (await clockOf(client, ''))
  return {
    facts: [
      ...servers.flatMap(({ facts }) => facts),
      `${place.name}: ${clock ? `the leader${clockFact(clock)}` : 'no clock could be read'}; ` +
        "whether a change is on disk before it is confirmed (forceSync, dataLogDir) can't be seen from a client",
    ],
    findings: [
      ...servers.flatMap(({ findings }) => findings),
      ...(untrusted === undefined ? [] : [untrustedFinding(untrusted)]),
      ...sessionFindings(options.sessionTimeout, client.sessionTimeout),
      ...(clock
        ? clockFindings(
            clock,
            ['P11'],
            gap =>
              `the leader's clock is ${gap}, and it decides when ids of transactions expire and ` +
              'when deleted values are removed for good',
          )
        : []),
    ],
  }
}

/**
 * Reads the leader's clock with an ephemeral node; undefined if this user may not create one, or the parent does not
 * exist yet.
 */
async function clockOf(client: ZooKeeper, folder: string): Promise<ClockFacts | undefined> {
  const begun = systemClock.now()
  const before = Date.now()
  try {
    const { stat } = await client.create(`${folder}/signalbox-doctor-${randomUUID()}`, '', {
      ephemeral: true,
    })
    const uncertainty = systemClock.now() - begun
    return { ahead: stat.ctime - (before + uncertainty / 2), uncertainty }
  } catch {
    // The trial reports missing rights.
    return undefined
  }
}

async function examineServer(host: string, port: number, isSecure: boolean): Promise<Diagnosis> {
  const name = `${host}:${port}`
  let answer
  try {
    answer = await ask(host, port, isSecure, 'srvr')
  } catch (error) {
    const finding: Finding = {
      id: 'server-down',
      promises: [],
      how: `${name} does not answer (${(error as Error).message}), so the ensemble tolerates fewer further failures`,
      fix: 'start it, or remove it from the URL',
    }
    return { facts: [], findings: [finding] }
  }
  const [, version, major, minor] = /version: ((\d+)\.(\d+)[.\d]*)/.exec(answer) ?? []
  const mode = /^Mode: (\w+)/m.exec(answer)?.[1]
  if (version === undefined)
    return { facts: [`${name}: could not be examined: ${answer.trim().slice(0, 80)}`], findings: [] }
  const [minMajor, minMinor] = MIN_VERSION
  const isOld = Number(major) < minMajor || (Number(major) === minMajor && Number(minor) < minMinor)
  const findings: (Finding | false)[] = [
    isOld && {
      id: 'version',
      promises: ['P5', 'P8'],
      how: `${name} is ZooKeeper ${version}, which lacks features that locks and watches need`,
      fix: `use ZooKeeper ${minMajor}.${minMinor} or later`,
    },
    mode === 'standalone' && {
      id: 'single-server',
      promises: ['P2', 'P13'],
      how: `${name} is standalone: if its disk fails, all values are lost, and tokens start again`,
      fix: 'use an ensemble of three or five servers',
    },
  ]
  return {
    facts: [`${name}: ZooKeeper ${version}, ${mode ?? 'not serving'}`],
    findings: findings.filter(each => each !== false),
  }
}

function untrustedFinding({ how, fix }: UntrustedNode): Finding {
  return {
    id: 'untrusted-node',
    promises: ['P1', 'P13'],
    how: `the ACL of a node is not safe, so \`open\` fails: ${how}`,
    fix,
  }
}

function sessionFindings(requested: number, agreed: number): Finding[] {
  if (agreed === requested) return []
  const what =
    agreed > requested ? 'the locks of a dead process are free' : 'a stalled process loses its locks'
  return [
    {
      id: 'session-timeout',
      promises: [agreed > requested ? 'P9' : 'P3'],
      how:
        `the servers changed a session timeout of ${shortDuration(requested)} to ${shortDuration(agreed)}, ` +
        `after which ${what}`,
      fix: 'change minSessionTimeout and maxSessionTimeout of the servers, or sessionTimeout in the URL',
    },
  ]
}

/** Sends a four-letter word to a server and returns its reply. */
function ask(host: string, port: number, isSecure: boolean, word: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = ''
    // The server closes the connection after its reply. If this side ended first, a relay could close it before that.
    const send = (): unknown => socket.write(word)
    const socket = isSecure
      ? connectTls({ host, port, servername: isIP(host) === 0 ? host : '' }, send)
      : connect(port, host, send)
    socket.setEncoding('utf8').on('data', (text: string) => (answer += text))
    socket.setTimeout(TIMEOUT, () => socket.destroy(new Error(`it did not answer within ${TIMEOUT} ms`)))
    socket.on('error', reject).on('close', () => resolve(answer))
  })
}

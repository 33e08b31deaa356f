import type {
  Address,
  Attempt,
  ClientPackage,
  Connect,
  ConnectionListener,
  Login,
  NetworkAddress,
  Reply,
} from './connection.js'

/** How to find a master that Sentinels monitor. */
export interface SentinelParts {
  readonly sentinels: readonly NetworkAddress[]
  /** The name of the master at the Sentinels. */
  readonly masterName: string
  /** For the master, and for a Sentinel that requires a login. */
  readonly login: Login
  readonly connect: ClientPackage
}

const DEFAULT_USER: Login = { username: undefined, password: undefined, database: 0 }
const IGNORE: ConnectionListener = { lost: () => undefined, message: () => undefined }

/** Connects to the master that the Sentinels name. Asks them again for each connection. */
export function connectToMaster(parts: SentinelParts): Connect {
  return async (listener, attempt) => {
    const { connect, login } = parts
    const connection = await connect(await findMaster(parts, attempt), login)(listener, attempt)
    // A Sentinel may not know yet that this server is no longer the master.
    const [role] = (await connection.send(['ROLE'])) as readonly Reply[]
    if (role !== 'master') throw new Error(`the server that the Sentinels name is a ${String(role)}`)
    return connection
  }
}

/** Asks all Sentinels at once and uses the first answer, because some of them may be down or frozen. */
async function findMaster(parts: SentinelParts, { signal, timeLimit }: Attempt): Promise<Address> {
  const asking = new AbortController()
  signal.addEventListener('abort', () => asking.abort())
  const attempt = { timeLimit, signal: asking.signal }
  try {
    return await Promise.any(parts.sentinels.map(sentinel => askSentinel(sentinel, parts, attempt)))
  } catch (error) {
    throw error instanceof AggregateError ? error.errors[0] : error
  } finally {
    asking.abort()
  }
}

async function askSentinel(
  sentinel: NetworkAddress,
  { connect, login, masterName }: SentinelParts,
  attempt: Attempt,
): Promise<Address> {
  const question = ['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', masterName]
  const ask = async (as: Login): Promise<Reply> =>
    (await connect(sentinel, as)(IGNORE, attempt)).send(question)
  const answer = await ask(DEFAULT_USER).catch((error: unknown) => {
    if (!isRefusal(error) || login.password === undefined) throw error
    return ask({ ...login, database: 0 })
  })
  if (answer === null) throw new Error(`no Sentinel knows the master ${masterName}`)
  const [host, port] = answer as readonly [string, string]
  return { host, port: Number(port), tls: sentinel.tls }
}

/** Whether a Sentinel requires a login, or gives the default user no right to ask. */
function isRefusal(error: unknown): boolean {
  return error instanceof Error && /^(NOAUTH|NOPERM)/.test(error.message)
}

import { STATUS_CODES } from 'node:http'
import { LostError, SignalboxError, type ErrorCode } from '../errors.js'

/** A problem document of RFC 9457. It does not describe the engine, which is internal to the service. */
export interface ProblemDocument {
  readonly type: 'about:blank'
  /** The name of the status. */
  readonly title: string
  readonly status: number
  readonly detail: string
  readonly code: ErrorCode
  /** Whether the work was begun: see `SignalboxError.taskBegan`. Absent where that is not known. */
  readonly taskBegan?: boolean
}

/** An answer to a request that met an error of Signalbox. */
export interface Problem {
  readonly status: number
  /** By name. `Retry-After` where trying again may help, and does nothing twice. */
  readonly headers: Readonly<Record<string, string>>
  readonly document: ProblemDocument
}

/** The media type of a problem document. */
export const PROBLEM_TYPE = 'application/problem+json'

/** When to try again, in seconds. */
const RETRY_AFTER = '1'

interface Meaning {
  readonly status: number
  readonly detail: string
  /** Whether trying again may help. */
  readonly retry?: boolean
}

const MEANINGS: Readonly<Record<ErrorCode, Meaning>> = {
  BUSY: { status: 409, detail: 'Another caller is at it.', retry: true },
  TIMED_OUT: { status: 503, detail: 'Its turn did not come in time.', retry: true },
  ABORTED: { status: 503, detail: 'The wait was aborted.' },
  UNAVAILABLE: { status: 503, detail: 'A service behind this one is out of reach.', retry: true },
  INDETERMINATE: { status: 504, detail: 'A service behind this one did not answer.' },
  LOST: { status: 500, detail: 'Its lock was lost while it worked.' },
  CONFLICT: { status: 409, detail: 'Another caller has changed it meanwhile.', retry: true },
  CLOSED: { status: 503, detail: 'This server is closing.', retry: true },
  DEADLOCK: { status: 500, detail: 'It would wait for itself.' },
  INVALID_ARGUMENT: { status: 500, detail: 'The server is at fault.' },
}

/** What may have been done, unless the task certainly was not called. */
const UNCLEAR: ReadonlySet<ErrorCode> = new Set(['INDETERMINATE', 'LOST'])

/** What an error means for the sender of the request, given the outcome of the task. */
function meaningOf(error: SignalboxError): Meaning {
  const { code, taskBegan } = error
  const { status, detail, retry = false } = MEANINGS[code]
  if (error instanceof LostError && error.taskEnded)
    return { status, detail: 'The work was done, but its lock had been lost.' }
  if (taskBegan === false && UNCLEAR.has(code)) return { status: 503, detail, retry: true }
  // A conflict has written nothing, so it may be tried again although the task was called.
  if (UNCLEAR.has(code) || (taskBegan === true && code !== 'CONFLICT'))
    return { status, detail: `${detail} It may have been done.` }
  return { status, detail, retry }
}

/**
 * Maps an error to an HTTP status and a problem document, for error handlers. Undefined for other errors than
 * Signalbox's.
 *
 * ```ts
 * const problem = problemOf(error)
 * if (!problem) throw error
 * response.writeHead(problem.status, problem.headers).end(JSON.stringify(problem.document))
 * ```
 */
export function problemOf(error: unknown): Problem | undefined {
  if (!(error instanceof SignalboxError)) return undefined
  const { code, taskBegan } = error
  const { status, detail, retry } = meaningOf(error)
  return {
    status,
    headers: { 'Content-Type': PROBLEM_TYPE, ...(retry && { 'Retry-After': RETRY_AFTER }) },
    document: {
      type: 'about:blank',
      title: STATUS_CODES[status]!,
      status,
      detail,
      code,
      ...(taskBegan !== undefined && { taskBegan }),
    },
  }
}

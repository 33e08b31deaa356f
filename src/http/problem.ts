import { STATUS_CODES } from 'node:http'
import { LostError, SignalboxError, type ErrorCode } from '../base/errors.js'

/** A problem document of RFC 9457. It does not describe the engine, which is internal to the service. */
export interface ProblemDocument {
  readonly type: 'about:blank'
  /** The name of the status. */
  readonly title: string
  readonly status: number
  readonly detail: string
  readonly code: ErrorCode
  /** Whether the work was begun: see `SignalboxError.taskBegan`. Absent if this is not known. */
  readonly taskBegan?: boolean
}

/** The HTTP response to a request that failed with an error of Signalbox. */
export interface Problem {
  readonly status: number
  /** By name. Has `Retry-After` if a retry may help and cannot do the work twice. */
  readonly headers: Readonly<Record<string, string>>
  readonly document: ProblemDocument
}

/** The media type of a problem document. */
export const PROBLEM_TYPE = 'application/problem+json'

/** Time after which the client may retry, in seconds. */
const RETRY_AFTER = '1'

interface Meaning {
  readonly status: number
  readonly detail: string
  /** Whether a retry may help. */
  readonly retry?: boolean
}

const MEANINGS: Readonly<Record<ErrorCode, Meaning>> = {
  BUSY: { status: 409, detail: 'The resource is busy.', retry: true },
  TIMED_OUT: { status: 503, detail: 'The request timed out waiting for its turn.', retry: true },
  ABORTED: { status: 503, detail: 'The wait was aborted.' },
  UNAVAILABLE: { status: 503, detail: 'A backend service is unavailable.', retry: true },
  INDETERMINATE: { status: 504, detail: 'A backend service did not respond.' },
  LOST: { status: 500, detail: 'The request lost its lock while it was being processed.' },
  CONFLICT: { status: 409, detail: 'Another request has changed the same data.', retry: true },
  CLOSED: { status: 503, detail: 'The server is shutting down.', retry: true },
  DEADLOCK: { status: 500, detail: 'The request would deadlock.' },
  INVALID_ARGUMENT: { status: 500, detail: 'The server failed to process the request.' },
}

/** Errors after which the work may have been done, unless the task was certainly not called. */
const UNCLEAR: ReadonlySet<ErrorCode> = new Set(['INDETERMINATE', 'LOST'])

/** Returns the status and the text of an error for the sender of the request, given the outcome of the task. */
function meaningOf(error: SignalboxError): Meaning {
  const { code, taskBegan } = error
  const { status, detail, retry = false } = MEANINGS[code]
  if (error instanceof LostError && error.taskEnded)
    return { status, detail: 'The work was done, but its lock was lost before it ended.' }
  if (taskBegan === false && UNCLEAR.has(code)) return { status: 503, detail, retry: true }
  // A conflict has written nothing, so a retry is safe although the task was called.
  if (UNCLEAR.has(code) || (taskBegan === true && code !== 'CONFLICT'))
    return { status, detail: `${detail} The work may have been done.` }
  return { status, detail, retry }
}

/**
 * Maps an error to an HTTP status and a problem document, for error handlers. Returns undefined for errors that are
 * not Signalbox's.
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

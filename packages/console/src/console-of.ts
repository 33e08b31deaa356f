import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Box, Diagnosis } from 'signalbox'
import { checkOptions, flag } from 'signalbox/engine'
import { answerFetch } from './fetch-handler.js'
import { answerNode } from './node-handler.js'
import { Routes } from './routes.js'

/** Options of {@link consoleOf}. */
export interface ConsoleOptions {
  /** Whether to reject releases and revocations; default false. */
  readOnly?: boolean | undefined
  /**
   * Examines the engine when a viewer asks for it, for example `() => diagnose(url)`. Without it, the page
   * has no view for that.
   */
  diagnose?: (() => Promise<Diagnosis>) | undefined
  /** Receives a line for each release and revocation; by default, it goes to standard error. */
  log?: ((line: string) => void) | undefined
}

/** A page that shows the locks and limits of an engine, as request handlers for a server. */
export interface BoxConsole {
  /** Answers a request of a server of Node: `app.use('/locks', console.node)` in Express. */
  readonly node: (request: IncomingMessage, response: ServerResponse) => void
  /** Answers a request of a server with the types of the Fetch standard, such as Hono. */
  readonly fetch: (request: Request) => Promise<Response>
  /** Disconnects the pages, and rejects further requests with the status 503. Does not close the box. */
  close(): void
}

/**
 * Returns request handlers for a page that shows the holders and waiters of an engine's locks, and its limiters. On the
 * page, operators can release grants and revoke sessions, and read values. The handlers check that requests come from
 * the page, but do not authenticate users: mount them behind your own sign-in. They work under any path.
 *
 * While pages are open, the console asks the engine once a second, regardless of their number.
 *
 * ```ts
 * const locks = consoleOf(box)
 * app.use('/locks', requireAdmin, locks.node)
 * ```
 * @throws InvalidArgumentError when an option is invalid.
 */
export function consoleOf(box: Box, options: ConsoleOptions = {}): BoxConsole {
  checkOptions(options, ['readOnly', 'diagnose', 'log'])
  const routes = new Routes(box, {
    readOnly: flag('readOnly', options.readOnly, false),
    diagnose: options.diagnose,
    log: options.log ?? (line => void process.stderr.write(`signalbox ${line}\n`)),
  })
  /** Functions that each disconnect one page. */
  const open = new Set<() => void>()
  return {
    node: (request, response) => void answerNode(routes, open, request, response),
    fetch: request => answerFetch(routes, open, request),
    close() {
      routes.close()
      for (const end of open) end()
    },
  }
}

import { ServerResponse } from 'node:http'
import { Catch, Inject, Injectable, Logger, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common'
import { HttpAdapterHost } from '@nestjs/core'
import { throwError, type Observable } from 'rxjs'
import { SignalboxError, type ErrorCode } from 'signalbox'
import { problemOf, type Problem, type ProblemDocument } from 'signalbox/http'

/** Outcomes of contention and of a shutdown, which need no operator. */
const EXPECTED: ReadonlySet<ErrorCode> = new Set(['BUSY', 'TIMED_OUT', 'ABORTED', 'CONFLICT', 'CLOSED'])

/**
 * Answers requests that failed with an error of Signalbox as `problemOf` of `signalbox/http` maps it: for example 409
 * if a lock is busy, and 503 if the wait was too long or the engine is unreachable, with `Retry-After`. Works on
 * Express and Fastify. In GraphQL, the client gets the text of the document and its code, as `extensions.code`. With
 * `@UseFilters(SignalboxExceptionFilter)` on a gateway, its client gets the event `exception` with that text. The
 * client of a microservice that has the filter gets the error `{ status: 'error', message, code }` with text and code.
 * Other errors keep the filters of Nest.
 *
 * ```ts
 * @Module({ providers: [{ provide: APP_FILTER, useClass: SignalboxExceptionFilter }] })
 * ```
 */
@Catch(SignalboxError)
@Injectable()
export class SignalboxExceptionFilter implements ExceptionFilter<SignalboxError> {
  readonly #logger = new Logger('SignalboxExceptionFilter')
  readonly #host: HttpAdapterHost

  constructor(@Inject(HttpAdapterHost) host: HttpAdapterHost) {
    this.#host = host
  }

  catch(error: SignalboxError, host: ArgumentsHost): Error | Observable<never> | undefined {
    const problem = problemOf(error)
    const type = host.getType<'http' | 'ws' | 'rpc' | 'graphql'>()
    // Nest continues with its own filter.
    if (!problem) return undefined
    if (!EXPECTED.has(error.code)) this.#logger.error(error.message, error.stack)
    if (type === 'graphql') return graphqlError(problem)
    if (type === 'rpc') return throwError(() => rpcError(problem))
    if (type === 'http') this.#answer(host.switchToHttp().getResponse(), problem)
    else notify(host.switchToWs().getClient(), problem)
    return undefined
  }

  #answer(response: object, { status, headers, document }: Problem): void {
    const { httpAdapter } = this.#host
    const text = JSON.stringify(document)
    if (response instanceof ServerResponse) {
      // The response of Express, or of a middleware on Fastify.
      if (response.headersSent) response.end()
      else response.writeHead(status, headers).end(text)
    } else if (httpAdapter.isHeadersSent(response)) {
      httpAdapter.end(response)
    } else {
      for (const [name, value] of Object.entries(headers)) httpAdapter.setHeader(response, name, value)
      httpAdapter.reply(response, text, status)
    }
  }
}

/** Sends the event that Nest sends to the client of a gateway. */
function notify(client: { emit?: (event: string, data: unknown) => unknown }, { document }: Problem): void {
  client.emit?.('exception', { status: 'error', message: document.detail })
}

/** Returns an error with these extensions. As the result of a resolver, it is the error of its field. */
function graphqlError(problem: Problem): Error {
  return Object.assign(new Error(problem.document.detail), { extensions: detailsOf(problem) })
}

/** Returns the error that Nest sends to the client of a microservice, with the code of the error. */
function rpcError(problem: Problem): object {
  return { status: 'error', message: problem.document.detail, ...detailsOf(problem) }
}

function detailsOf({ document: { code, taskBegan } }: Problem): Pick<ProblemDocument, 'code' | 'taskBegan'> {
  return { code, ...(taskBegan !== undefined && { taskBegan }) }
}

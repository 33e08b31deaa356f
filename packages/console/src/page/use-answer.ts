import { useEffect, useRef, useState } from 'preact/hooks'
import { RequestError } from '../page-kit/browser/event-stream.js'
import { useShared } from './context.js'

/** The answer of the server to a request, or the reason why there is none. */
export type Answer<T> =
  | { readonly at: number; readonly content: T; readonly failure?: undefined }
  | { readonly at: number; readonly failure: string }

/**
 * Asks the server once, and again for each call of the returned function. The answer is undefined until it arrives.
 * @param query undefined to ask nothing
 */
export function useAnswer<T>(
  name: string,
  query: Readonly<Record<string, string>> | undefined,
): readonly [answer: Answer<T> | undefined, ask: () => void] {
  const { connection } = useShared()
  const [answer, setAnswer] = useState<Answer<T>>()
  /** Number of the newest request. The answers to older requests are dropped. */
  const turn = useRef(0)
  const ask = async (): Promise<void> => {
    const own = ++turn.current
    const next: Answer<T> = await connection.get(name, query!).then(
      content => ({ at: Date.now(), content: content as T }),
      (error: unknown) => ({
        at: Date.now(),
        failure: error instanceof RequestError ? error.message : String(error),
      }),
    )
    if (own === turn.current) setAnswer(next)
  }
  useEffect(() => {
    if (query) void ask()
    return () => {
      turn.current++
    }
  }, [])
  return [answer, () => void ask()]
}

import { lock } from 'proper-lockfile'
import { answerWith } from './lockfile-rounds.js'

await answerWith(lock)

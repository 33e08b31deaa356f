import { lock } from 'signalbox-lockfile'
import { answerWith } from './lockfile-rounds.js'

await answerWith(lock)

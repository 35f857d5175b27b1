/**
 * Creates the components of one scheduler and connects them. A component receives in its constructor the components
 * that it calls. Connections that would form a circle are set at the end, as narrow interfaces.
 */
import type { Host } from "../host/host.ts";
import { Agenda } from "./agenda.ts";
import { AttemptViews } from "./attempt-views.ts";
import { Attempts } from "./attempts.ts";
import { Authors } from "./authors.ts";
import { Dispatch } from "./dispatch.ts";
import { Documents } from "./documents.ts";
import { Episode } from "./episode.ts";
import { Events } from "./events.ts";
import { Gates } from "./gates.ts";
import { Graph } from "./graph.ts";
import { InformationFlow } from "./information-flow.ts";
import { Introspection } from "./introspection.ts";
import { Invalidation } from "./invalidation.ts";
import { Lifecycle } from "./lifecycle.ts";
import { OutsideReads } from "./outside-reads.ts";
import { Persistence } from "./persistence.ts";
import { Precedence } from "./precedence.ts";
import { ProvisionalDemand } from "./provisional-demand.ts";
import { Pull } from "./pull.ts";
import { Quiescence } from "./quiescence.ts";
import { Registry } from "./registry.ts";
import { RunCommits } from "./run-commits.ts";
import { RunReads } from "./run-reads.ts";
import { RunTiming } from "./run-timing.ts";
import { RunWrites } from "./run-writes.ts";
import { Runner } from "./runner.ts";
import { SendAnswers } from "./send-answers.ts";
import { Settle } from "./settle.ts";
import { TraceTopics } from "./trace.ts";
import { WriteTurns } from "./turns.ts";

/** The components that the facade uses. */
export type Components = ReturnType<typeof compose>;

export function compose(host: Host) {
  // State: nodes, documents, reads and writes, changes, queues.
  const registry = new Registry();
  const trace = new TraceTopics();
  const gates = new Gates(host, trace.gate);
  const agenda = new Agenda(gates);
  const graph = new Graph(agenda);
  const invalidation = new Invalidation(graph, agenda, gates, trace);
  const authors = new Authors();
  const introspection = new Introspection({ host, gates, registry, trace, authors });
  const documents = new Documents({ registry, graph, invalidation });
  const turns = new WriteTurns(host, invalidation, introspection, trace.commit);
  const base = { host, trace, registry, gates, agenda, graph, invalidation, introspection, documents, turns };

  // Running nodes.
  const flow = new InformationFlow(invalidation);
  const persistence = new Persistence(base);
  const precedence = new Precedence(base);
  const quiescence = new Quiescence(base);
  const commits = new RunCommits({ ...base, authors, background: quiescence });
  const reads = new RunReads({ ...base, precedence, persistence, flow });
  const writes = new RunWrites({ ...base, flow, commits });
  const timing = new RunTiming(host, gates);
  const outsideReads = new OutsideReads(base);
  const runner = new Runner({
    ...base,
    ...{ timing, persistence, flow, reads, outsideReads, writes },
    background: quiescence,
  });
  const provisional = new ProvisionalDemand(base);
  const episode = new Episode(base);
  const running = { persistence, precedence, quiescence, reads, runner, provisional, episode };
  const settle = new Settle({ ...base, ...running });
  const lifecycle = new Lifecycle({ ...base, ...running, settle });
  const pull = new Pull({ lifecycle, documents, quiescence, gates, runner });

  // Handling sends.
  const answers = new SendAnswers({ host, introspection, work: settle });
  const reading = { registry, graph, agenda, gates, runner, work: settle };
  const views = new AttemptViews({ ...reading, turns });
  const dispatch = new Dispatch({
    ...reading,
    host,
    views,
    introspection,
    answers,
    passes: settle,
    background: quiescence,
  });
  const attempts = new Attempts({ host, runner, background: quiescence });
  const events = new Events({ host, runner, attempts, dispatch, answers, work: settle });

  runner.views = views;
  trace.clock = graph;
  agenda.waker = settle;
  turns.waker = settle;
  gates.home = settle;
  reads.upstream = settle;
  outsideReads.work = settle;
  persistence.holder = settle;
  quiescence.activity = settle;
  quiescence.sends = events;
  settle.sends = events;
  invalidation.rollbackListener = events;
  return {
    ...base,
    flow,
    persistence,
    quiescence,
    runner,
    episode,
    settle,
    lifecycle,
    pull,
    attempts,
    reading,
    views,
    events,
  };
}
